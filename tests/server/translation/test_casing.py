"""Sentences in all caps, in a title's capitals and in lower case on their way through a model."""

import asyncio
from dataclasses import replace

import pytest

from bundle.loading import Bundle
from server.text.glossary import Glossary
from server.text.tokenizers.marian import MarianTokenizer
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import Translation, TranslationRequest
from tests.fakes.answering import Answering
from tests.fakes.echo import EchoGenerator, make_bundle
from tests.server.text.identity import LETTERS

_TEXT = "the man is not here he said stop now I smoking forbidden rauchen verboten ist Hund der hier er sagte sofort"
_WORDS = frozenset(_TEXT.split())


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return make_bundle(tmp_path_factory.mktemp("casing"), sentences=LETTERS)


@pytest.fixture(autouse=True)
def words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the vocabulary of letters some words."""

    def cost(self: MarianTokenizer, word: str, *, is_target: bool = False) -> float:
        return 8.0 if word in _WORDS else 8.0 + 2.5 * len(word)

    monkeypatch.setattr(MarianTokenizer, "word_cost", cost)


def _translate(engine: EchoGenerator, text: str, languages: tuple[str, str] = ("en", "de"), **more: object) -> str:
    request = replace(TranslationRequest((text,), *languages), **more)  # type: ignore[arg-type]
    translations: list[Translation] = asyncio.run(Pipeline(engine, TranslationLimits()).translate(request)).translations
    return translations[0].text


@pytest.mark.parametrize(
    ("text", "read", "answer", "translation"),
    [
        ("THE MAN IS HERE.", "The man is here.", "Der Hund ist hier.", "DER HUND IST HIER."),
        ("The Man Is Here", "The man is here", "Der Hund ist hier", "Der Hund Ist Hier"),
        ("the man is here.", "The man is here.", "Der Hund ist hier.", "der Hund ist hier."),
        ("the man is here.", "The man is here.", "Hund ist hier.", "Hund ist hier."),
        ("he said: STOP NOW", "he said: stop now", "er sagte: sofort", "er sagte: SOFORT"),
    ],
)
def test_the_model_reads_the_words_that_it_knows_and_its_answer_gets_the_capitals_of_the_source(
    bundle: Bundle, text: str, read: str, answer: str, translation: str
) -> None:
    assert _translate(Answering(bundle, {read: answer}), text) == translation


@pytest.mark.parametrize(
    ("text", "is_special"),
    [
        ("The man is here. SMOKING FORBIDDEN.", True),
        ("SMOKING FORBIDDEN. The man is here.", True),
        ("The man is here. The man is not here.", False),
    ],
)
def test_a_text_is_special_if_one_of_its_sentences_has_unusual_capitals(
    bundle: Bundle, text: str, is_special: bool
) -> None:
    """Otherwise its whole call would take the slower path, whose answers to the other texts can differ."""
    pipeline = Pipeline(EchoGenerator(bundle), TranslationLimits())
    assert pipeline.may_be_special(text, "en") == is_special


def test_a_word_in_capitals_that_a_tag_cuts_is_read_as_one_word(bundle: Bundle) -> None:
    engine = Answering(bundle, {"The mani is here": "Der Hund ist hier"})
    for text in ("THE M<b>ANI</b> IS HERE", "THE MAN<b>I</b> IS HERE"):
        assert "HUND" in _translate(engine, text, format="html")


def test_a_usual_sentence_is_read_as_it_is(bundle: Bundle) -> None:
    engine = Answering(bundle, {"The man is here.": "Der Hund ist hier."})
    assert _translate(engine, "The man is here.") == "Der Hund ist hier."
    assert len(engine.batches) == 1


@pytest.mark.parametrize(
    ("text", "translation"),
    [
        ("RAUCHEN VERBOTEN", "SMOKING FORBIDDEN"),
        ("rauchen verboten", "smoking forbidden"),
    ],
)
def test_a_lost_negation_is_required(bundle: Bundle, text: str, translation: str) -> None:
    first = dict.fromkeys(("Rauchen verboten", "rauchen verboten"), "Smoking")
    required = {f"{form}.": "Smoking forbidden." for form in first}
    engine = Answering(bundle, first, required)
    assert _translate(engine, text, ("de", "en")) == translation
    [terms] = engine.batches[1][0].params.required_terms
    assert tuple(engine.tokenizer.encode_target("forbidden")) in terms


def test_a_kept_negation_takes_one_round(bundle: Bundle) -> None:
    engine = Answering(bundle, {"Rauchen verboten": "No smoking"})
    assert _translate(engine, "RAUCHEN VERBOTEN", ("de", "en")) == "NO SMOKING"
    assert len(engine.batches) == 1


def test_a_glossary_leaves_small_letters_alone(bundle: Bundle) -> None:
    engine = Answering(bundle, {"the man is here.": "der hund."}, {"the man is here.": "der Hund."})
    assert _translate(engine, "the man is here.", glossary=Glossary({"man": "Hund"})) == "der Hund."
