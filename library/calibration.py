"""The command `kvasir calibrate`: how good the translations of a bundle are, learned from pairs of held-out text."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np
import typer
from numpy.typing import NDArray

from bundle.loading import Bundle, load_bundle, save_manifest
from bundle.manifest import QualityCalibration
from model.training.parallel_text import read_pairs
from model.training.translation_memory import Pair
from server.interface.decoding_options import DecodingOptions
from server.text.segmentation.sentences import sentences
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.quality import QualitySignals, pair_name
from server.translation.router import Router
from server.translation.types import Translation, TranslationRequest
from server.workers.engine_pool import EnginePool
from server.workers.pool_options import PoolOptions

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline as Regression

_MIN_PAIRS: Final = 100  # on either side of the limit
_NO_QUEUE_LIMIT: Final = 1 << 20
_FOLDS: Final = 5


def calibrate(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="Bundle whose bundle.json receives the numbers.")],
    data: Annotated[
        list[Path],
        typer.Option(metavar="FILE", help="Pairs that the model was not trained on, in any format of kvasir train."),
    ],
    source: Annotated[str | None, typer.Option(help="Source language, for a bundle with several.")] = None,
    target: Annotated[str | None, typer.Option(help="Target language, for a bundle with several.")] = None,
    swap_columns: Annotated[
        bool, typer.Option("--swap-columns", show_default=False, help="The second column is the source.")
    ] = False,
    min_chrf: Annotated[
        float, typer.Option(min=0, max=100, help="chrF from which a translation counts as good.")
    ] = 40.0,
    beam_size: Annotated[int, typer.Option(min=1, max=8, help="Beams of the search.")] = 4,
) -> None:
    """Teach a bundle to estimate the quality of its translations, for `return_quality` and `min_quality`."""
    # Imported here, so that --help works without them.
    from sacrebleu.metrics import CHRF
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    loaded = load_bundle(bundle)
    pool = EnginePool.open(loaded, PoolOptions(replicas=1, max_waiting=_NO_QUEUE_LIMIT))
    try:
        pipeline = Pipeline(pool, TranslationLimits())
        route = Router([pipeline]).find(source, target)
        languages = (route.source, route.target)
        pairs = [pair for file in data for pair in read_pairs(file, languages, swap_columns=swap_columns)]
        pairs = [pair for pair in pairs if len(sentences(pair[0], route.source)) == 1]
        translations = _translations(pipeline, [text for text, _ in pairs], languages, beam_size)
    finally:
        pool.close()
    chrf = CHRF()
    scores = [
        chrf.sentence_score(done.text, [reference]).score
        for done, (_, reference) in zip(translations, pairs, strict=True)
    ]
    is_good = np.array(scores) >= min_chrf
    if min(is_good.sum(), (~is_good).sum()) < _MIN_PAIRS:
        raise ValueError(
            f"at least {_MIN_PAIRS} sentences must have a chrF of {min_chrf:g} or more, and {_MIN_PAIRS} less. "
            f"Given: {is_good.sum()} of {len(pairs)}; use more pairs, or another --min-chrf"
        )
    signals = _signals(pairs, translations)
    usual_length_ratio = float(np.median(signals[:, -1]))
    signals[:, -1] = np.abs(signals[:, -1] - usual_length_ratio)
    regression = _regression().fit(signals, is_good)
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
    predicted = cross_val_predict(_regression(), signals, is_good, cv=folds, method="predict_proba")[:, 1]
    _save(loaded, pair_name(*languages), _calibration(regression, usual_length_ratio))
    area = roc_auc_score(is_good, predicted)
    typer.echo(
        f"{loaded.config.name}, {route.source} to {route.target}: {is_good.sum()} of {len(pairs)} sentences have a "
        f"chrF of {min_chrf:g} or more; area under the ROC curve {area:.3f} (cross-validated)"
    )


def _translations(
    pipeline: Pipeline, texts: Sequence[str], languages: tuple[str, str], beam_size: int
) -> list[Translation]:
    options = DecodingOptions(beam_size=beam_size, return_scores=True)
    request = TranslationRequest(tuple(texts), *languages, options, bypass_cache=True)
    return asyncio.run(pipeline.translate(request)).translations


def _signals(pairs: Sequence[Pair], translations: Sequence[Translation]) -> NDArray[np.float64]:
    """Return the signals of each sentence, [sentences, signals], in the order of `QualitySignals`."""
    return np.array(
        [
            QualitySignals.of(text, done.text, done.source_tokens, done.log_probability / max(done.target_tokens, 1))
            for (text, _), done in zip(pairs, translations, strict=True)
        ]
    )


def _regression() -> "Regression":
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression())


def _calibration(regression: "Regression", usual_length_ratio: float) -> QualityCalibration:
    """Return the regression with weights of the signals themselves, in place of standardized ones."""
    scaler, logistic = regression[0], regression[1]
    weights = logistic.coef_[0] / scaler.scale_
    bias = float(logistic.intercept_[0] - weights @ scaler.mean_)
    named = dict(zip(QualitySignals._fields, weights.tolist(), strict=True))
    numbers = {"bias": bias, **named, "usual_length_ratio": usual_length_ratio}
    return QualityCalibration.model_validate({name: round(number, 4) for name, number in numbers.items()})


def _save(bundle: Bundle, pair: str, calibration: QualityCalibration) -> None:
    quality = {**bundle.config.quality, pair: calibration}
    save_manifest(bundle.path, bundle.config.model_copy(update={"quality": quality}))
