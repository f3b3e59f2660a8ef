"""Sentences whose source is kept, on their way through the pipeline and the service."""

import asyncio
from dataclasses import replace

import pytest

from server.interface.decoding_options import DecodingOptions
from server.interface.request import Completion, Request
from server.text.glossary import Glossary
from server.text.language_detection import Detector
from server.text.tokenizers.marian import MarianTokenizer
from server.text.tokenizers.registry import open_tokenizer
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.plain_texts import PlainTextPath
from server.translation.router import Router
from server.translation.service import AUTO, TranslationService
from server.translation.text_stream import TextStream
from server.translation.types import KeptSentence, Translation, TranslationRequest
from tests.fakes.echo import EchoFor, EchoGenerator

GERMAN = "Wo ist der Bahnhof hier?"
ENGLISH = "Where is the railway station?"
FRENCH = "Je ne sais pas dire cela."
TARGET, OTHER = "already_in_target_language", "not_in_source_language"


async def _take_no_text(path: PlainTextPath, *arguments: object) -> None:
    return None


def _translate(
    engine: EchoGenerator, *texts: str, limits: TranslationLimits | None = None, **changes: object
) -> list[Translation]:
    pipeline = Pipeline(engine, limits or TranslationLimits(), checks_sources=True)
    request = replace(TranslationRequest(texts, "en", "de"), **changes)  # type: ignore[arg-type]  # fields
    return asyncio.run(pipeline.translate(request)).translations


def _kept(translation: Translation) -> list[tuple[str, str]]:
    return [(each.text, each.reason.value) for each in translation.kept]


def _decoded(engine: EchoGenerator) -> list[str]:
    tokenizer = open_tokenizer(engine.bundle)
    return [tokenizer.decode(each.source[:-1].tolist()) for batch in engine.batches for each in batch]


@pytest.mark.parametrize("is_plain", [True, False])
def test_kept_sentences_are_not_decoded_and_keep_their_place(
    echo: EchoGenerator, monkeypatch: pytest.MonkeyPatch, is_plain: bool
) -> None:
    if not is_plain:
        monkeypatch.setattr(PlainTextPath, "translate", _take_no_text)
    text = f"{ENGLISH} {GERMAN}\n{FRENCH}"
    [translation] = _translate(echo, text)
    assert translation.text == text
    assert _kept(translation) == [(GERMAN, TARGET), (FRENCH, OTHER)]
    assert _decoded(echo) == [ENGLISH]
    assert translation.source_tokens == len(echo.batches[0][0].source)


def test_sentences_with_items_and_tags_are_kept_whole(echo: EchoGenerator) -> None:
    text = "<p>Wo <b>ist der</b> Bahnhof 300 hier? Where is the <i>dog</i>?</p>"
    [translation] = _translate(echo, text, format="html")
    assert translation.text == text
    assert _kept(translation) == [("Wo ist der Bahnhof 300 hier?", TARGET)]
    assert _decoded(echo) == ["Where is the dog?"]


def test_a_text_without_words_is_named_and_layout_is_not(echo: EchoGenerator) -> None:
    symbol, mixed, empty = _translate(echo, " § ", f"{ENGLISH}\n---\n{ENGLISH}", " \n")
    assert (symbol.text, _kept(symbol)) == (" § ", [("§", "no_words")])
    assert mixed.kept == empty.kept == ()


def test_options_and_defaults_of_the_server_translate_kept_sentences(echo: EchoGenerator) -> None:
    options = DecodingOptions(if_already_target="translate")
    [translation] = _translate(echo, f"{GERMAN}\n{FRENCH}", options=options)
    assert _kept(translation) == [(FRENCH, OTHER)]
    options = DecodingOptions(if_untranslatable="translate")
    [translation] = _translate(echo, f"{GERMAN}\n{FRENCH}", options=options)
    assert _kept(translation) == [(GERMAN, TARGET)]
    limits = TranslationLimits(if_already_target="translate", if_untranslatable="translate")
    assert not _translate(echo, f"{GERMAN}\n{FRENCH}", limits=limits)[0].kept
    options = DecodingOptions(if_already_target="keep")
    assert _kept(_translate(echo, GERMAN, limits=limits, options=options)[0]) == [(GERMAN, TARGET)]


def test_a_term_of_the_glossary_and_a_text_with_a_prefix_are_translated(echo: EchoGenerator) -> None:
    assert not _translate(echo, GERMAN, glossary=Glossary({"Bahnhof": "Tee"}))[0].kept
    assert not _translate(echo, GERMAN, options=DecodingOptions(target_prefix="Wo"))[0].kept


class Unsure(EchoGenerator):
    """Answers with little confidence."""

    def _complete(self, request: Request) -> Completion:
        done = super()._complete(request)
        return replace(done, hypotheses=[replace(each, log_probability=-50.0) for each in done.hypotheses])


@pytest.mark.parametrize("is_plain", [True, False])
def test_a_word_that_the_model_does_not_understand_is_kept_unless_the_answer_is_streamed(
    echo: EchoGenerator, monkeypatch: pytest.MonkeyPatch, is_plain: bool
) -> None:
    monkeypatch.setattr(MarianTokenizer, "word_cost", lambda self, word, is_target=False: 3.0 * len(word))
    if not is_plain:
        monkeypatch.setattr(PlainTextPath, "translate", _take_no_text)
    engine = Unsure(echo.bundle)
    text = "(tea) …\nWould the lady like a cup of tea?"
    [translation] = _translate(engine, text)
    assert translation.text.startswith("(tea) …\n")
    assert _kept(translation) == [("(tea) …", "unintelligible")]
    assert len(_decoded(engine)) == 2
    pipeline = Pipeline(engine, TranslationLimits(), checks_sources=True)
    streamed = asyncio.run(pipeline.translate(TranslationRequest((text,), "en", "de"), TextStream()))
    assert not streamed.translations[0].kept
    samples = DecodingOptions(temperature=1.0)
    assert not _translate(engine, text, options=samples)[0].kept


def test_a_stream_has_kept_sentences_in_their_place(echo: EchoGenerator) -> None:
    stream = TextStream()
    pipeline = Pipeline(echo, TranslationLimits(), checks_sources=True)
    text = f"{GERMAN} {ENGLISH}"
    asyncio.run(pipeline.translate(TranslationRequest((text,), "en", "de"), stream))
    assert "".join(delta.text for delta in stream.take()) == text


def _service(echo_for: EchoFor, limits: TranslationLimits) -> TranslationService:
    pipelines = [Pipeline(echo_for(*pair), limits, checks_sources=True) for pair in (("en", "de"), ("de", "en"))]
    return TranslationService(Router(pipelines, pivot="en"), Detector(["en", "de"]), limits)


def test_a_detected_text_in_the_target_language_has_the_reason_and_can_be_forced(echo_for: EchoFor) -> None:
    service = _service(echo_for, TranslationLimits())
    request = TranslationRequest((GERMAN, "§"), "", "")
    done = asyncio.run(service.translate(request, AUTO, "de"))
    assert [_kept(each) for each in done.result.translations] == [[(GERMAN, TARGET)], [("§", "no_words")]]
    assert done.unchanged == {0, 1}
    forced = replace(request, options=DecodingOptions(if_already_target="translate"))
    done = asyncio.run(service.translate(forced, AUTO, "de"))
    assert done.unchanged == {1}
    assert done.model == "echo-en-de"


def test_through_a_pivot_a_sentence_of_the_target_language_is_kept_to_the_end(echo_for: EchoFor) -> None:
    pipelines = [
        Pipeline(echo_for(*pair), TranslationLimits(), checks_sources=True) for pair in (("fr", "en"), ("en", "de"))
    ]
    service = TranslationService(Router(pipelines, pivot="en"), Detector(()), TranslationLimits())
    done = asyncio.run(service.translate(TranslationRequest((GERMAN,), "", ""), "fr", "de"))
    assert done.result.translations[0].kept == (KeptSentence(GERMAN, done.result.translations[0].kept[0].reason),)
    assert _kept(done.result.translations[0]) == [(GERMAN, TARGET)]
