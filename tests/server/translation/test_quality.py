"""Quality of sentences: estimated for each, and what becomes of sentences below the limit."""

import asyncio
import math
from dataclasses import replace

import pytest

from bundle.loading import Bundle
from bundle.manifest import QualityCalibration
from server.interface.decoding_options import DecodingOptions
from server.interface.errors import InvalidRequest
from server.interface.request import Completion, Request
from server.text.tokenizers.registry import open_tokenizer
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.pivot import PivotPipeline
from server.translation.quality import QualitySignals, estimate
from server.translation.text_stream import TextStream
from server.translation.types import Translation, TranslationRequest, TranslationResult
from tests.fakes.echo import EchoFor, EchoGenerator

GOOD, BAD = "Where is the tea?", "Where is the dog?"
# The probability is that of a mean token: 1 / (1 + e ** -(2 - 1 * nats)).
BY_PROBABILITY = QualityCalibration(
    bias=2, log_probability=1, source_tokens=0, characters_per_token=0, length_ratio=0, usual_length_ratio=0
)
GOOD_QUALITY, BAD_QUALITY = round(1 / (1 + math.exp(-1.9)), 4), round(1 / (1 + math.exp(2.0)), 4)


class Unsure(EchoGenerator):
    """A model that copies all but its first tokens. Tokens cost 0.1 nats each, and 4 in sentences with a dog."""

    num_skipped: int = 0

    def _complete(self, request: Request) -> Completion:
        completion = super()._complete(request)
        text = open_tokenizer(self.bundle).decode(request.source[:-1].tolist())
        cost = 4.0 if "dog" in text else 0.1
        hypotheses = []
        for each in completion.hypotheses:
            tokens = each.token_ids[self.num_skipped :]
            hypotheses.append(replace(each, token_ids=tokens, log_probability=-cost * (len(tokens) + 1)))
        return replace(completion, hypotheses=hypotheses)


def _calibrated(bundle: Bundle, calibration: QualityCalibration = BY_PROBABILITY) -> Bundle:
    config = bundle.config
    pair = f"{config.source_languages[0]}-{config.target_languages[0]}"
    return replace(bundle, config=config.model_copy(update={"quality": {pair: calibration}}))


@pytest.fixture
def engine(echo: EchoGenerator) -> Unsure:
    return Unsure(_calibrated(echo.bundle))


def _result(
    engine: EchoGenerator,
    *texts: str,
    limits: TranslationLimits | None = None,
    stream: TextStream | None = None,
    **options: object,
) -> TranslationResult:
    request = TranslationRequest(texts, "en", "de", DecodingOptions.given(options))
    return asyncio.run(Pipeline(engine, limits or TranslationLimits()).translate(request, stream))


def _translate(engine: EchoGenerator, *texts: str, **options: object) -> Translation:
    return _result(engine, *texts, **options).translations[0]  # type: ignore[arg-type]  # options


@pytest.mark.parametrize(("name", "better"), [("log_probability", -0.2), ("characters_per_token", 4.0)])
def test_a_signal_moves_the_quality_as_its_weight_does(name: str, better: float) -> None:
    signals = QualitySignals(log_probability=-0.5, source_tokens=2.0, characters_per_token=3.0, length_ratio=0.3)
    calibration = BY_PROBABILITY.model_copy(update={name: 1.5})
    assert estimate(signals._replace(**{name: better}), calibration) > estimate(signals, calibration)


def test_unusual_lengths_lower_the_quality_on_both_sides() -> None:
    calibration = BY_PROBABILITY.model_copy(update={"length_ratio": -2.0, "usual_length_ratio": 0.1})
    qualities = [estimate(QualitySignals(-1.0, 2.0, 3.0, ratio), calibration) for ratio in (-0.4, 0.1, 0.6)]
    assert qualities[0] == pytest.approx(qualities[2])
    assert qualities[1] > qualities[0]
    assert estimate(QualitySignals(-1e6, 2.0, 3.0, 0.0), calibration) == 0.0


def test_sentences_and_texts_have_their_quality(engine: Unsure) -> None:
    translation = _translate(engine, f"{GOOD} {BAD}\n{GOOD}", return_quality=True)
    assert [(each.text, each.translation, each.quality) for each in translation.sentence_quality] == [
        (GOOD, GOOD, GOOD_QUALITY),
        (BAD, BAD, BAD_QUALITY),
        (GOOD, GOOD, GOOD_QUALITY),
    ]
    assert translation.quality == pytest.approx((2 * GOOD_QUALITY + BAD_QUALITY) / 3, abs=1e-4)
    assert translation.low_quality == ()


def test_sentences_of_low_quality_are_named(engine: Unsure) -> None:
    result = _result(engine, f"{GOOD} {BAD}", GOOD, min_quality=0.5)
    first, second = result.translations
    assert first.text == f"{GOOD} {BAD}"
    assert [each.text for each in first.low_quality] == [BAD]
    assert (second.quality, second.low_quality, second.sentence_quality) == (GOOD_QUALITY, (), ())
    assert result.num_low_quality == 1


def test_the_source_of_a_sentence_of_low_quality_is_kept(engine: Unsure) -> None:
    engine.num_skipped = 1
    result = _result(engine, f"{BAD}\n{GOOD}", min_quality=0.5, on_low_quality="keep_source")
    [translation] = result.translations
    assert translation.text.startswith(f"{BAD}\n")
    assert not translation.text.endswith(GOOD)
    assert [(each.text, each.reason) for each in translation.kept] == [(BAD, "low_quality")]
    assert [each.quality for each in translation.low_quality] == [BAD_QUALITY]
    assert translation.quality == GOOD_QUALITY


def test_a_sentence_with_tags_and_items_is_kept_whole(engine: Unsure) -> None:
    text = "<p>Where is <b>the dog</b> 300?</p>"
    options = DecodingOptions(min_quality=0.5, on_low_quality="keep_source")
    request = TranslationRequest((text,), "en", "de", options, format="html")
    [translation] = asyncio.run(Pipeline(engine, TranslationLimits()).translate(request)).translations
    assert translation.text == text
    assert [each.text for each in translation.kept] == ["Where is the dog 300?"]
    assert translation.quality is None


@pytest.mark.parametrize("options", [{"num_hypotheses": 2}, {"temperature": 1.0}])
def test_requests_for_several_translations_or_samples_are_only_flagged(
    engine: Unsure, options: dict[str, object]
) -> None:
    engine.num_skipped = 1
    translation = _translate(engine, BAD, min_quality=0.5, on_low_quality="keep_source", **options)
    assert translation.text != BAD
    assert len(translation.low_quality) == 1
    assert not translation.kept


def test_a_stream_is_only_flagged(engine: Unsure) -> None:
    async def translate() -> Translation:
        return (await Pipeline(engine, TranslationLimits()).translate(request, TextStream())).translations[0]

    engine.num_skipped = 1
    request = TranslationRequest((BAD,), "en", "de", DecodingOptions(min_quality=0.5, on_low_quality="keep_source"))
    translation = asyncio.run(translate())
    assert translation.text != BAD
    assert len(translation.low_quality) == 1


def test_a_server_has_a_default_that_requests_replace(engine: Unsure) -> None:
    limits = TranslationLimits(min_quality=0.5, on_low_quality="keep_source")
    assert _translate(engine, BAD, limits=limits).kept
    assert not _translate(engine, BAD, limits=limits, on_low_quality="flag").kept
    assert not _translate(engine, BAD, limits=limits, min_quality=0).low_quality
    assert _translate(engine, GOOD).quality is None


@pytest.mark.parametrize("options", [{"return_quality": True}, {"min_quality": 0.5}])
def test_a_model_without_calibration_rejects_the_options(echo: EchoGenerator, options: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest, match=r"echo-en-de is not calibrated for en to de; run `kvasir calibrate`"):
        _translate(echo, GOOD, **options)
    assert not echo.batches


def test_a_default_of_the_server_does_not_apply_to_models_without_calibration(echo: EchoGenerator) -> None:
    translation = _translate(echo, GOOD, limits=TranslationLimits(min_quality=0.9, on_low_quality="keep_source"))
    assert (translation.quality, translation.kept) == (None, ())


@pytest.mark.parametrize(("on_low_quality", "text"), [("flag", None), ("keep_source", BAD)])
def test_a_pivot_multiplies_the_qualities_of_its_steps(
    engine: Unsure, echo_for: EchoFor, on_low_quality: str, text: str | None
) -> None:
    second = Unsure(_calibrated(echo_for("de", "fr").bundle))
    second.num_skipped = 1
    limits = TranslationLimits(min_quality=0.5)
    pivot = PivotPipeline(Pipeline(engine, limits), Pipeline(second, limits), ("de", "de"))
    options = DecodingOptions.given({"return_quality": True, "on_low_quality": on_low_quality})
    request = TranslationRequest((GOOD, BAD), "en", "fr", options)
    good, bad = asyncio.run(pivot.translate(request)).translations
    assert good.quality == pytest.approx(GOOD_QUALITY**2, abs=1e-4)
    assert [each.text for each in good.sentence_quality] == [GOOD]
    assert [each.quality for each in bad.low_quality] == [pytest.approx(BAD_QUALITY**2, abs=1e-4)]
    assert (bad.text == BAD) == (text == BAD)
    assert [each.reason for each in bad.kept] == ["low_quality"] * (text == BAD)


def test_a_pivot_through_a_model_without_calibration_is_rejected(engine: Unsure, echo_for: EchoFor) -> None:
    second = echo_for("de", "fr")
    pivot = PivotPipeline(Pipeline(engine, TranslationLimits()), Pipeline(second, TranslationLimits()), ("de", "de"))
    request = TranslationRequest((GOOD,), "en", "fr", DecodingOptions(return_quality=True))
    with pytest.raises(InvalidRequest, match="echo-de-fr is not calibrated"):
        asyncio.run(pivot.translate(request))
    assert not engine.batches
