"""Plain texts, and texts with anything to keep, differ in these ways and in no others."""

import asyncio
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from bundle.loading import Bundle
from server.interface.decoding_options import DecodingOptions
from server.interface.errors import TextTooLong
from server.interface.request import Completion, Request
from server.text.glossary import Glossary
from server.text.segmentation.sentences import Segment, sentences, split
from server.text.tokenizers.registry import open_tokenizer
from server.translation import plain_encoding, reading
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.text_stream import TextStream
from server.translation.types import TranslationRequest, TranslationResult
from tests.fakes.echo import MAX_TOKENS, EchoGenerator, make_bundle
from tests.server.text.identity import LETTERS, IdentityEngine

HTML = {"format": "html"}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return make_bundle(tmp_path_factory.mktemp("letters"), sentences=LETTERS)


@pytest.fixture
def engine(bundle: Bundle) -> EchoGenerator:
    return IdentityEngine(bundle)


class LowerCaseEngine(EchoGenerator):
    """Answers with the source in lower case."""

    def _complete(self, request: Request) -> Completion:
        done = super()._complete(request)
        tokenizer = open_tokenizer(self.bundle)
        text = tokenizer.decode(done.hypotheses[0].token_ids).lower()
        hypotheses = [replace(each, token_ids=tokenizer.encode_target(text)) for each in done.hypotheses]
        return replace(done, hypotheses=hypotheses)


class ForgetfulEngine(EchoGenerator):
    """Leaves out the last token, so that no substitute at the end of a sentence comes back."""

    def _complete(self, request: Request) -> Completion:
        done = super()._complete(request)
        for hypothesis in done.hypotheses:
            del hypothesis.token_ids[-1:]
        return done


def _translate(engine: EchoGenerator, *texts: str, **fields: object) -> TranslationResult:
    engine.batches.clear()
    request = replace(TranslationRequest(texts, "en", "de"), **fields)  # type: ignore[arg-type]
    return asyncio.run(Pipeline(engine, TranslationLimits()).translate(request))


def _sources(engine: EchoGenerator) -> list[str]:
    """The texts of the requests that the engine has received, sorted."""
    tokenizer = open_tokenizer(engine.bundle)
    return sorted(tokenizer.decode(each.source.tolist()) for batch in engine.batches for each in batch)


@pytest.mark.parametrize("fields", [{}, HTML])
def test_a_sentence_of_numbers_is_not_decoded(engine: EchoGenerator, fields: dict[str, object]) -> None:
    _translate(engine, "Where is it? 42 ...", **fields)
    assert _sources(engine) == ["Where is it?"]


def test_one_text_with_something_to_keep_makes_all_texts_of_its_request_protected(engine: EchoGenerator) -> None:
    _translate(engine, "Where is it? Here\n---", "{name} is here.")
    assert _sources(engine) == ["Here", "Where is it?", "{name} is here."]


def test_plain_text_is_split_as_a_whole_and_any_other_line_by_line(
    engine: EchoGenerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []

    def recorded(text: str, language: str) -> list[Segment]:
        texts.append(text)
        return sentences(text, language)

    def recorded_split(text: str, language: str, fits: Callable[[str], bool]) -> list[Segment]:
        texts.append(text)
        return split(text, language, fits)

    monkeypatch.setattr(plain_encoding, "sentences", recorded)
    monkeypatch.setattr(reading, "split", recorded_split)
    _translate(engine, "Where is it?\n Here.\n")
    assert texts == ["Where is it?\n Here.\n"]
    texts.clear()
    _translate(engine, "Where is {it}?\n Here.\n")
    assert texts == ["Where is XXXX?", "Here."]


def test_tokens_of_a_placeholder_are_counted_as_those_of_its_mask(engine: EchoGenerator) -> None:
    text = "the dog is in https://x.org/qzjqzjqzj now"
    assert open_tokenizer(engine.bundle).count_tokens(text) > MAX_TOKENS
    result = _translate(engine, text)
    assert result.translations[0].text == text
    assert result.num_splits == 0
    assert _sources(engine) == ["the dog is in www.example.com now"]


def test_a_sentence_with_substitutes_returns_as_many_hypotheses_as_beams(engine: EchoGenerator) -> None:
    _translate(engine, "Where is {name}? The dog", options=DecodingOptions(beam_size=3))
    assert sorted(each.params.num_hypotheses for each in engine.batches[0]) == [1, 3]


@pytest.mark.parametrize(("num_layers", "layer"), [(1, 0), (2, 0), (6, 4)])
def test_tags_inside_a_sentence_take_the_attention_of_the_last_layer_but_one(
    bundle: Bundle, num_layers: int, layer: int
) -> None:
    shapes = bundle.config.shapes.model_copy(update={"num_decoder_layers": num_layers})
    engine = IdentityEngine(replace(bundle, config=bundle.config.model_copy(update={"shapes": shapes})))
    _translate(engine, "the <b>dog</b> jumps", **HTML)
    [[request]] = engine.batches
    assert (request.params.return_attention, request.params.alignment_layer) == (True, layer)
    _translate(engine, "<b>the dog jumps</b>", **HTML)
    [[request]] = engine.batches
    assert not request.params.return_attention


def test_attention_that_the_request_asks_for_is_of_its_own_layer(engine: EchoGenerator) -> None:
    _translate(engine, "the <b>dog</b> jumps", **HTML, options=DecodingOptions(return_attention=True))
    [[request]] = engine.batches
    assert (request.params.return_attention, request.params.alignment_layer) == (True, -1)


@pytest.mark.parametrize("texts", [("Where is it? Here.", "Tea."), ("Where is it? Here {name}", "Tea.")])
def test_a_request_draws_one_seed_for_all_its_sentences_and_rounds(bundle: Bundle, texts: tuple[str, ...]) -> None:
    engine = ForgetfulEngine(bundle)
    result = _translate(engine, *texts, options=DecodingOptions(temperature=0.5))
    sampled = [each.params.sampling for batch in engine.batches for each in batch if each.params.sampling is not None]
    assert len(sampled) >= 3
    assert {each.seed for each in sampled} == {result.seed}


def test_a_term_at_the_beginning_is_capitalized_in_plain_text_only(bundle: Bundle) -> None:
    glossary = Glossary({"tea": "tea"})
    engine = LowerCaseEngine(bundle)
    assert _translate(engine, "Tea is here.", glossary=glossary).translations[0].text == "Tea is here."
    assert _translate(engine, "Tea is here.", glossary=glossary, **HTML).translations[0].text == "tea is here."


@pytest.mark.parametrize(
    ("text", "translation", "fields"),
    [
        ("Tea", "Tee", {}),
        ('Some water.\n"TEA!"', 'Some water.\n"TEE!"', {}),
        ("<p><b>Tea</b></p><p>Some water.</p>", "<p><b>Tee</b></p><p>Some water.</p>", HTML),
        ("“Tea.”", "“Tee.”", {}),
        ("<p>Tea <i>set</i></p>", "<p>Tee-<i>Set</i></p>", HTML),
    ],
)
def test_a_sentence_that_is_a_term_of_the_glossary_is_not_decoded(
    engine: EchoGenerator, text: str, translation: str, fields: dict[str, object]
) -> None:
    glossary = Glossary({"tea": "Tee", "tea set": "Tee-Set"})
    [translated] = _translate(engine, text, glossary=glossary, **fields).translations
    assert translated.text == translation
    assert not any("tea" in source.lower() for source in _sources(engine))


@pytest.mark.parametrize("options", [{"num_hypotheses": 2}, {"return_scores": True}, {"target_prefix": "the"}])
def test_options_about_hypotheses_decode_a_term_of_the_glossary(
    engine: EchoGenerator, options: dict[str, object]
) -> None:
    _translate(engine, "tea", glossary=Glossary({"tea": "tea"}), options=DecodingOptions(**options))  # type: ignore[arg-type]
    assert _sources(engine) == ["tea"]


@pytest.mark.parametrize(
    ("options", "first"),
    [({}, "T"), ({"target_prefix": "tea"}, "t"), ({"required_phrases": ("tea",), "beam_size": 2}, "t")],
)
def test_an_answer_begins_with_the_phrase_of_an_option_as_it_is_written(
    bundle: Bundle, options: dict[str, object], first: str
) -> None:
    engine = LowerCaseEngine(bundle)
    [translated] = _translate(
        engine,
        "Tea costs 250.",
        options=DecodingOptions(**options),  # type: ignore[arg-type]
    ).translations
    assert translated.text == f"{first}ea costs 250."


def test_the_error_for_a_plain_text_taken_whole_names_the_text(engine: EchoGenerator) -> None:
    options = DecodingOptions(target_prefix="the")
    with pytest.raises(TextTooLong, match="a text taken as one sentence has"):
        _translate(engine, "the dog " * 50, options=options)
    with pytest.raises(TextTooLong, match="a part of the text that cannot be divided has"):
        _translate(engine, "the <dog/> " * 50, options=options)


def _streamed(engine: EchoGenerator, text: str, **fields: object) -> list[str]:
    """Return the deltas of a stream whose reader takes what each request reports, in the order of the requests."""
    deltas: list[str] = []
    stream = TextStream()

    class Reporting(IdentityEngine):
        async def generate(self, requests: Sequence[Request]) -> list[Completion]:
            completions = await super().generate(requests)
            for request in sorted(requests, key=lambda each: each.id):
                for num_tokens in range(1, len(request.source)):
                    if request.on_progress is not None:
                        request.on_progress(request.source[:num_tokens].tolist(), num_tokens == len(request.source) - 1)
                    deltas.extend(delta.text for delta in stream.take())
            return completions

    request = replace(TranslationRequest((text,), "en", "de"), **fields)  # type: ignore[arg-type]
    asyncio.run(Pipeline(Reporting(engine.bundle), TranslationLimits()).translate(request, stream))
    return [*deltas, *(delta.text for delta in stream.take())]


def test_sentences_without_items_are_streamed_by_token_and_others_as_a_whole(engine: EchoGenerator) -> None:
    plain = _streamed(engine, "the dog jumps")
    assert len(plain) > 1
    assert "".join(plain) == "the dog jumps"
    assert _streamed(engine, "the dog jumps {high}") == ["the dog jumps {high}"]
    first, *others = _streamed(engine, "Where is {name}? The dog jumps")
    assert first.startswith("Where is {name}?")
    assert len(others) > 1
    assert "".join([first, *others]) == "Where is {name}? The dog jumps"


def test_a_document_with_tags_is_streamed_as_a_whole(engine: EchoGenerator) -> None:
    assert len(_streamed(engine, "the <b>dog</b> jumps", **HTML)) == 1


def test_plain_text_that_was_decoded_in_time_is_an_answer_however_late_it_is_assembled(engine: EchoGenerator) -> None:
    times = itertools.chain([0.0, 0.0], itertools.repeat(3.0))
    request = TranslationRequest(("the dog jumps",), "en", "de", timeout_seconds=2.5)
    result = asyncio.run(Pipeline(engine, TranslationLimits(), clock=lambda: next(times)).translate(request))
    assert result.translations[0].text == "the dog jumps"


@pytest.mark.parametrize("text", ["Good morning. Tea.", "Good {name} morning."])
def test_all_rounds_of_a_request_but_the_first_are_accepted_already(bundle: Bundle, text: str) -> None:
    engine = ForgetfulEngine(bundle)
    _translate(engine, text)
    assert [{each.accepted_earlier for each in batch} for batch in engine.batches] == [
        {bool(number)} for number in range(len(engine.batches))
    ]
    _translate(engine, text, accepted_earlier=True)
    assert {each.accepted_earlier for batch in engine.batches for each in batch} == {True}


@pytest.mark.parametrize(("text", "is_decoded"), [("the dog jumps", True), ("12 34", False), ("{name}", False)])
def test_a_text_without_decoded_sentences_has_no_score(engine: EchoGenerator, text: str, is_decoded: bool) -> None:
    [translation] = _translate(engine, text, options=DecodingOptions(return_scores=True)).translations
    assert bool(translation.target_tokens) == is_decoded
    assert math.isnan(translation.score) != is_decoded
