import asyncio
from dataclasses import replace

import numpy as np
import pytest

from bundle.loading import Bundle
from bundle.manifest import SpanCopying
from server.interface.decoding_options import DecodingOptions, DetailOptions
from server.interface.request import Completion, FinishReason, Hypothesis, Request, TokenDetails
from server.text.tokenizers.registry import open_tokenizer
from server.translation.assembly import sentence_details
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import SentenceDetails, TokenScore, TranslationRequest
from tests.fakes.echo import EchoGenerator
from tests.fakes.rule_engine import RuleEngine, byte_bundle


class _SilentEngine(EchoGenerator):
    """Ends every sentence before its first token."""

    def _complete(self, request: Request) -> Completion:
        done = super()._complete(request)
        return replace(done, hypotheses=[Hypothesis([], -0.5, -0.25, FinishReason.LENGTH)])


@pytest.mark.parametrize(("text", "score", "log_probability"), [("Tea.", -0.25, -0.5), ("Tea. Water.", -0.25, -1.0)])
def test_a_translation_ended_before_its_first_token_has_a_score(
    echo: EchoGenerator, text: str, score: float, log_probability: float
) -> None:
    pipeline = Pipeline(_SilentEngine(echo.bundle), TranslationLimits())
    options = DecodingOptions(max_new_tokens=1, return_scores=True)
    [translation] = asyncio.run(pipeline.translate(TranslationRequest((text,), "en", "de", options))).translations
    assert translation.target_tokens == 0
    assert translation.score == pytest.approx(score)
    assert translation.log_probability == pytest.approx(log_probability)


def _details(bundle: Bundle, options: DetailOptions, reason: FinishReason = FinishReason.STOP) -> SentenceDetails:
    tokenizer = open_tokenizer(bundle)
    source = tokenizer.encode("Where is")
    target = list(tokenizer.encode_target("Wo"))
    attention = np.zeros((len(target) + 1, len(source)), np.float32)
    attention[:, -1] = 0.9  # rests on the end
    attention[:, 1] = 0.1
    details = TokenDetails([-0.5] * (len(target) + 1), [[(target[0], -0.25)]], attention)
    return sentence_details(source, Hypothesis(target, -1.0, -1.0, reason, details), options, tokenizer)


def test_details_are_those_that_were_requested(echo_bundle: Bundle) -> None:
    bare = _details(echo_bundle, DetailOptions())
    assert (bare.token_scores, bare.token_alternatives, bare.alignment, bare.attention) == (None, None, None, None)
    assert _details(echo_bundle, DetailOptions(return_token_scores=True)).token_scores == [-0.5] * len(
        bare.target_tokens
    )
    best = _details(echo_bundle, DetailOptions(num_token_alternatives=1)).token_alternatives
    assert best == [[TokenScore(bare.target_tokens[0], -0.25)]]
    assert _details(echo_bundle, DetailOptions(return_attention=True)).attention is not None


def test_a_token_is_aligned_with_any_source_token_but_the_end(echo_bundle: Bundle) -> None:
    found = _details(echo_bundle, DetailOptions(return_alignments=True))
    assert found.alignment == [1] * len(found.target_tokens)
    assert found.attention is None


def test_the_end_is_a_token_where_it_was_generated(echo_bundle: Bundle) -> None:
    ended = _details(echo_bundle, DetailOptions()).target_tokens
    assert _details(echo_bundle, DetailOptions(), FinishReason.LENGTH).target_tokens == ended[:-1]


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("It costs <b>$90.74</b>, I say, now.", "Es kostet <b>$90,74</b>, sage ich, jetzt."),
        (
            "It costs <b>$<!-- -->90<!-- -->.<!-- -->74</b>, I say, now.",
            "Es kostet <b>$<!-- -->90<!-- -->,<!-- -->74</b>, sage ich, jetzt.",
        ),
        (
            "It costs <b>$<i>90</i>.<u>74</u></b>, I say, now.",
            "Es kostet <b>$<i>90</i>,<u>74</u></b>, sage ich, jetzt.",
        ),
        ("It costs $90.<i>74</i>, I say, now.", "Es kostet $90,<i>74</i>, sage ich, jetzt."),
        ("It has 20,<b>000</b> doors, I say.", "Es hat 20.<b>000</b> Türen, sage ich."),
        ("It has <b>20</b>,000 doors, I say.", "Es hat <b>20</b>.000 Türen, sage ich."),
        ("It has <b>1</b>,<i>000</i> or 1,<b>000</b> doors.", "Es hat <b>1</b>.<i>000</i> oder 1.<b>000</b> Türen."),
    ],
)
def test_a_tag_divides_a_number_where_it_does_in_the_source(markup: str, expected: str) -> None:
    words = {"It": "Es", "costs": "kostet", "I say": "sage ich", "now": "jetzt", "has": "hat", "doors": "Türen"}
    words |= {"90.74": "90,74", "20,000": "20.000", "1,000": "1.000", " or ": " oder "}

    def translated(text: str) -> str:
        for word, translation in words.items():
            text = text.replace(word, translation)
        return text

    pipeline = Pipeline(RuleEngine(byte_bundle(), translated), TranslationLimits())
    request = TranslationRequest((markup,), "en", "de", format="html")
    [translation] = asyncio.run(pipeline.translate(request)).translations
    assert translation.text == expected


@pytest.mark.parametrize(
    "text",
    ["It costs € 50 and €20.", "It is 20 °C there.", "© 2020 by Tom.", "We have 3½ or ½ of it.", "Java™ is old."],
)
def test_signs_that_the_model_loses_stand_next_to_their_words(text: str) -> None:
    lost = "€°©½™"

    def garbled(read: str) -> str:
        return "".join("#" if sign in lost else sign for sign in read)

    bundle = byte_bundle(copying=SpanCopying(masks=("X1", "X2", "X3"), lost_signs=tuple(lost)))
    request = TranslationRequest((text,), "en", "de", DecodingOptions(if_already_target="translate"))
    result = asyncio.run(Pipeline(RuleEngine(bundle, garbled), TranslationLimits()).translate(request))
    assert result.translations[0].text == text


def test_a_sign_touches_no_word_that_it_does_not_touch_in_the_source() -> None:
    bundle = byte_bundle(copying=SpanCopying(masks=("X1",), lost_signs=("€",)))
    engine = RuleEngine(bundle, lambda text: text.replace(",", ""))
    request = TranslationRequest(("Pay 20 €, or call me.", "Pay €20, or call me."), "en", "de")
    found = asyncio.run(Pipeline(engine, TranslationLimits()).translate(request)).translations
    assert [each.text for each in found] == ["Pay 20 € or call me.", "Pay €20 or call me."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The book of {name}.", "Le livre d’{name}."),
        ("The book of {{name}}.", "Le livre d’{{name}}."),
        ("{n, plural, one {the book of {name}} other {# books of {name}}}",
         "{n, plural, one {le livre d’{name}} other {# livres d’{name}}}"),
        ("The book isn''t of {name}.", "Le livre n''est pas d’{name}."),
        ("The book of %s.", "Le livre d'%s."),
        ("The book of '{name}'.", "Le livre d''{name}'."),
    ],
)  # fmt: skip
def test_an_apostrophe_quotes_no_placeholder_of_a_message(text: str, expected: str) -> None:
    words = {"The book": "Le livre", "the book": "le livre", "books": "livres", "isn't": "n'est pas", " of ": " d'"}

    def translated(source: str) -> str:
        for word, translation in words.items():
            source = source.replace(word, translation)
        return source

    pipeline = Pipeline(RuleEngine(byte_bundle("en", "fr"), translated), TranslationLimits())
    request = TranslationRequest((text,), "en", "fr")
    [translation] = asyncio.run(pipeline.translate(request)).translations
    assert translation.text == expected


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("@anna Good morning!", "Good morning!"),
        ("@anna #tea  A house.", "A house."),
        ("{name} Good {day}!", "Good X1!"),
        ("@anna is here.", "X1 is here."),
        ("@anna NASA is here.", "X1 NASA is here."),
        ("@anna", None),
    ],
)
def test_spans_in_front_of_a_sentence_are_not_read(text: str, read: str | None) -> None:
    engine = RuleEngine(byte_bundle(copying=SpanCopying(masks=("X1", "X2"))))
    request = TranslationRequest((text,), "en", "de", DecodingOptions(if_already_target="translate"))
    [translation] = asyncio.run(Pipeline(engine, TranslationLimits()).translate(request)).translations
    assert translation.text == text
    assert [each.strip() for each in engine.read] == ([] if read is None else [read])
