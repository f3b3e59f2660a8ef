"""The command `kvasir calibrate`: facts about a bundle that are learned from pairs of held-out text.

They are what it copies, which repairs it gains from, and how good its translations are.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np
import typer
from numpy.typing import NDArray

from bundle.loading import load_bundle, save_manifest
from bundle.manifest import QualityCalibration
from library.card import repairs_table, write_section
from library.copying import described, measured_copying
from library.repairs import Decoder, repair_figures
from model.training.parallel_text import Pair, read_pairs
from server.text.segmentation.sentences import sentences
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.quality import QualitySignals, pair_name
from server.translation.router import Router
from server.translation.types import Translation

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline as Regression

_MIN_PAIRS: Final = 100  # on either side of the limit
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
    """Teach a bundle what it copies, which repairs it gains from, and to estimate the quality of its translations.

    The first two decide how the server translates with it: spans of the kinds that it copies are not masked, and a
    second attempt is made for lost numbers, lost parts or capitals where that has made translations of the data better.
    The estimate is for `return_quality` and `min_quality`. The figures are written into its model card, if it has one.
    """
    # Imported here, so that --help works without them.
    from sacrebleu.metrics import CHRF
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    loaded = load_bundle(bundle)
    decoder = Decoder(loaded, beam_size)
    chrf = CHRF()

    def score(translation: str, reference: str) -> float:
        return float(chrf.sentence_score(translation, [reference]).score)

    try:
        route = Router([Pipeline(decoder.pool, TranslationLimits())]).find(source, target)
        languages, pair = (route.source, route.target), pair_name(route.source, route.target)
        pairs = [each for file in data for each in read_pairs(file, languages, swap_columns=swap_columns)]
        pairs = [each for each in pairs if len(sentences(each[0], route.source)) == 1]
        copying = measured_copying(decoder.pool, [languages], [text for text, _ in pairs])
        others = {name: repairs for name, repairs in loaded.config.repairs.items() if name != pair}
        config = loaded.config.model_copy(update={"copying": copying, "repairs": others})
        run = decoder.run([text for text, _ in pairs], languages, config)
        scores = [score(done.text, reference) for done, (_, reference) in zip(run.translations, pairs, strict=True)]
        is_good = np.array(scores) >= min_chrf
        if min(is_good.sum(), (~is_good).sum()) < _MIN_PAIRS:
            raise ValueError(
                f"at least {_MIN_PAIRS} sentences must have a chrF of {min_chrf:g} or more, and {_MIN_PAIRS} less. "
                f"Given: {is_good.sum()} of {len(pairs)}; use more pairs, or another --min-chrf"
            )
        figures = repair_figures(decoder, config, languages, pairs, run, score)
    finally:
        decoder.close()
    signals = _signals(pairs, run.translations)
    usual_length_ratio = float(np.median(signals[:, -1]))
    signals[:, -1] = np.abs(signals[:, -1] - usual_length_ratio)
    regression = _regression().fit(signals, is_good)
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
    predicted = cross_val_predict(_regression(), signals, is_good, cv=folds, method="predict_proba")[:, 1]
    area = roc_auc_score(is_good, predicted)
    repairs = tuple(each.repair for each in figures if each.is_gain)
    calibrated = {
        "quality": {**config.quality, pair: _calibration(regression, usual_length_ratio)},
        "repairs": {**others, pair: repairs} if repairs else others,
    }
    save_manifest(loaded.path, config.model_copy(update=calibrated))
    typer.echo(
        f"{config.name}, {route.source} to {route.target}: {is_good.sum()} of {len(pairs)} sentences have a "
        f"chrF of {min_chrf:g} or more; area under the ROC curve {area:.3f} (cross-validated)"
    )
    table = repairs_table(figures)
    typer.echo(f"{described(copying)}\n\n{table}")
    files = ", ".join(file.name for file in data)
    write_section(
        loaded.path,
        f"Copying and repairs, {pair}",
        f"Measured with `kvasir calibrate` on {files}, beam {beam_size}. {described(copying)}\n\n{table}",
    )


def _signals(pairs: Sequence[Pair], translations: Sequence[Translation]) -> NDArray[np.float64]:
    """Return the signals of each sentence, [sentences, signals], in the order of `QualitySignals`."""
    return np.array(
        [
            QualitySignals.of(
                text, done.text, max(done.source_tokens, 1), done.log_probability / max(done.target_tokens, 1)
            )
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
