"""Items through models that copy everything, that lose numbers, and that never copy a kind."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from benchmarks.quality.protected_items import sentences_with_items
from bundle.loading import Bundle
from server.interface.decoding_options import DecodingOptions
from server.interface.request import Completion, Request
from server.text.items.kinds import ItemKind
from server.text.items.patterns import NUMBERS
from server.text.items.survival import Answer
from server.text.protection.means import Means
from server.text.readers.placeholders import Kind, find_placeholders
from server.text.readers.unknown_characters import UnknownCharacters
from server.text.spelled_out import spelled_out
from server.text.tokenizers.registry import open_tokenizer
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import Translation, TranslationRequest
from tests.fakes.echo import MAX_TOKENS, EchoGenerator, make_bundle
from tests.server.text.identity import LETTERS

NUM_SENTENCES = 2000
KEPT_NOTATION = DecodingOptions(localize_numbers=False)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    drawn = sentences_with_items(seed=4, number=200, language="en")
    return make_bundle(tmp_path_factory.mktemp("items"), sentences=[*LETTERS, *filter(str.isascii, drawn)])


@pytest.fixture(scope="module")
def sentences(bundle: Bundle) -> list[str]:
    """Return sentences with items of every kind, without those that are too long or lack a character."""
    count_tokens = open_tokenizer(bundle).count_tokens
    drawn = sentences_with_items(seed=3, number=NUM_SENTENCES * 4, language="en")
    fitting = [sentence for sentence in drawn if sentence.isascii() and count_tokens(sentence) <= MAX_TOKENS - 8]
    return fitting[:NUM_SENTENCES]


class Rewriting(EchoGenerator):
    """Answers with a text made of the source text."""

    def __init__(self, bundle: Bundle, rewrite: Callable[[str], str]) -> None:
        super().__init__(bundle)
        self._tokenizer = open_tokenizer(bundle)
        self._rewrite = rewrite

    def _complete(self, request: Request) -> Completion:
        done = super()._complete(request)
        text = self._rewrite(self._tokenizer.decode(request.source.tolist()))
        tokens = self._tokenizer.encode_target(text)
        return replace(done, hypotheses=[replace(each, token_ids=list(tokens)) for each in done.hypotheses])


class Answering(EchoGenerator):
    """Answers every request with the same hypotheses."""

    def __init__(self, bundle: Bundle, *answers: str) -> None:
        super().__init__(bundle)
        self._answers = [open_tokenizer(bundle).encode_target(answer) for answer in answers]

    def _complete(self, request: Request) -> Completion:
        done = super()._complete(request)
        return replace(done, hypotheses=[replace(done.hypotheses[0], token_ids=list(each)) for each in self._answers])


def _translate(engine: EchoGenerator, *texts: str, options: DecodingOptions = KEPT_NOTATION) -> list[Translation]:
    request = TranslationRequest(texts, "en", "de", options)
    return asyncio.run(Pipeline(engine, TranslationLimits()).translate(request)).translations


def _without_every_third_number() -> Callable[[str], str]:
    count = 0

    def drop(match: "object") -> str:
        nonlocal count
        count += 1
        return "" if count % 3 == 0 else str(match[0])  # type: ignore[index]

    return lambda text: NUMBERS.sub(drop, text)


def _num_lost(source: str, translation: str) -> int:
    found = [each for each in find_placeholders(source, UnknownCharacters(map(chr, range(0x250)))) if each.item]
    items = [(each.item or ItemKind.WORD, source[each.start : each.end]) for each in found if each.kind is Kind.ITEM]
    return Answer(translation, "en", "de").find(items).count(None)


def test_a_model_that_copies_everything_is_left_alone(bundle: Bundle, sentences: list[str]) -> None:
    assert len(sentences) == NUM_SENTENCES
    sentences = [each for each in sentences if spelled_out("en", "de").in_full(each) == each]  # models read `Nr. 5`
    engine = EchoGenerator(bundle)
    translations = _translate(engine, *sentences)
    tokenizer = open_tokenizer(bundle)
    assert len(engine.batches) == 1  # no second attempt
    raw = [tokenizer.decode(tokenizer.encode(sentence).tolist()) for sentence in sentences]
    assert [each.text for each in translations] == raw
    sources = sorted(tokenizer.decode(each.source.tolist()) for each in engine.batches[0])
    # Nothing is masked; times inside a sentence have no full stops.
    assert sources == sorted(re.sub(r"([ap])\.m\.(?=[,;:)]| [a-z0-9])", r"\1m", sentence) for sentence in raw)
    assert {item.means for each in translations for item in each.protected} == {Means.AS_IS}
    assert {item.kind for each in translations for item in each.protected} >= set(ItemKind) - {
        *(ItemKind.MARKUP, ItemKind.WORD, ItemKind.SYMBOL),
    }


def test_a_model_that_drops_every_third_number_loses_nothing(bundle: Bundle, sentences: list[str]) -> None:
    translations = _translate(Rewriting(bundle, _without_every_third_number()), *sentences)
    lost = [
        (sentence, each.text)
        for sentence, each in zip(sentences, translations, strict=True)
        if _num_lost(sentence, each.text)
    ]
    assert not lost


@pytest.mark.parametrize(
    ("text", "answer", "translation", "means"),
    [
        ("Order 4711 is here.", "Order 4776 is here.", "Order 4711 is here.", Means.CORRECTED),
        ("It is 15 km.", "It is 1 km.", "It is 15 km.", Means.CORRECTED),
        ("It is $15.", "It is $1.", "It is $15.", Means.CORRECTED),
        ("It is 15 km.", "It is 1.", "It is 15 km.", Means.CORRECTED),
        ("It was 3:2.", "It was 3:2 pm.", "It was 3:2.", Means.AS_IS),
        ('the "dog" jumps', 'the „dog" jumps', 'the "dog" jumps', Means.AS_IS),
        ('the "dog" jumps', "the „dog“ jumps", "the „dog“ jumps", Means.AS_IS),
        ("It costs 500 euros.", "It costs 500 elros.", "It costs 500 euros.", Means.CORRECTED),
        ("It costs 500 euros now.", "It costs 500 elros now.", "It costs 500 euros elros now.", Means.CORRECTED),
        ("Closed on Dec. 24.", "Closed on Dec. 24.25.", "Closed on Dec. 24.", Means.CORRECTED),
        ("It has 98 m² now.", "It has 98 m2 now.", "It has 98 m² now.", Means.AS_IS),
        ("Hello {count} dogs.", "Hello {count } dogs.", "Hello {count} dogs.", Means.AS_IS),
        ("It has x².", "It has x2.", "It has x².", Means.AS_IS),
        ("USB 3.0 is here.", "USB 3,0 is here.", "USB 3.0 is here.", Means.AS_IS),
        ("It is — the dog.", "It is the dog.", "It is — the dog.", Means.PLACED),
        ("the “dog” jumps", "the dog jumps", "the „dog“ jumps", Means.PLACED),
        ('the "dog" jumps', "the dog jumps", 'the "dog" jumps', Means.PLACED),
    ],
)
def test_a_lost_item_is_put_right_in_the_same_answer(
    bundle: Bundle, text: str, answer: str, translation: str, means: Means
) -> None:
    engine = Rewriting(bundle, lambda source: answer)
    [found] = _translate(engine, text)
    assert (found.text, len(engine.batches)) == (translation, 1)
    assert {item.means for item in found.protected} == {means}


@pytest.mark.parametrize(
    ("lost", "means", "num_rounds"),
    [
        (("4711",), Means.STAND_IN, 2),
        (("4711", "350", "47"), Means.NAME, 3),
        (("4711", *map(str, range(10))), Means.NAME, 3),
    ],
)
def test_stronger_means_are_tried_in_their_order(
    bundle: Bundle, lost: tuple[str, ...], means: Means, num_rounds: int
) -> None:
    def drop(text: str) -> str:
        for each in lost:
            text = text.replace(each, "")
        return text

    engine = Rewriting(bundle, drop)
    [found] = _translate(engine, "the 4711 jumps")
    assert (found.text, len(engine.batches)) == ("the 4711 jumps", num_rounds)
    assert [item.means for item in found.protected] == [means]


@pytest.mark.parametrize(
    ("text", "answer", "translation"),
    [
        ("the “dog” jumps", 'the "dog jumps', "the „dog“ jumps"),  # one is placed
        ("the “dog” jumps", 'the "dog" jumps', "the „dog“ jumps"),
        ("a “dog” and a “fox”", "a „dog“ and a „fox“", "a „dog“ and a „fox“"),  # “ is another mark in each language
        ('the "dog" jumps', "the dog jumps", 'the "dog" jumps'),
    ],
)
def test_quotation_marks_are_as_straight_as_those_of_the_source(
    bundle: Bundle, text: str, answer: str, translation: str
) -> None:
    [found] = _translate(Rewriting(bundle, lambda _: answer), text)
    assert found.text == translation


def test_a_second_dash_of_a_dialogue_is_written_once(bundle: Bundle) -> None:
    [found] = _translate(EchoGenerator(bundle), "- the dog. - the fox.")
    assert found.text == "- the dog. - the fox."


@pytest.mark.parametrize("written", ["....", ".."])
@pytest.mark.parametrize("ellipsis", ["...", "…"])
def test_an_ellipsis_of_more_or_fewer_full_stops_is_the_ellipsis(bundle: Bundle, ellipsis: str, written: str) -> None:
    engine = Rewriting(bundle, lambda text: text.replace("...", written).replace("…", written))
    [found] = _translate(engine, f"the dog{ellipsis} the fox")
    assert found.text == f"the dog{ellipsis} the fox"


@pytest.mark.parametrize("end", ["...", "…"])
def test_an_ellipsis_takes_the_place_of_a_full_stop(bundle: Bundle, end: str) -> None:
    engine = Rewriting(bundle, lambda text: text.rstrip(".…") + ".")
    [found] = _translate(engine, f"the dog jumps{end}")
    assert found.text == f"the dog jumps{end}"


def test_a_full_stop_behind_an_item_becomes_the_ellipsis_of_the_source(bundle: Bundle) -> None:
    engine = Rewriting(bundle, lambda text: text.rstrip(".") + ".")
    [found] = _translate(engine, "the 4711 dogs jump...")
    assert found.text == "the 4711 dogs jump..."


def test_a_word_for_a_number_is_in_capitals_as_all_words_are(bundle: Bundle) -> None:
    engine = Rewriting(bundle, lambda text: text.replace("3", "drei"))
    [found] = _translate(engine, "THE DOG JUMPS 3 TIMES")
    assert found.text == "THE DOG JUMPS DREI TIMES"


def test_later_searches_have_two_beams(bundle: Bundle) -> None:
    engine = Rewriting(bundle, lambda text: text.replace("4711", "").replace("350", ""))
    options = DecodingOptions(beam_size=4)
    [found] = _translate(engine, "the 4711 jumps", options=options)
    assert found.text == "the 4711 jumps"
    assert [batch[0].params.beam_size for batch in engine.batches] == [4, 2, 2]


def test_stronger_means_are_taken_for_what_was_lost_only(bundle: Bundle) -> None:
    engine = Rewriting(bundle, lambda text: text.replace("4711", ""))
    [found] = _translate(engine, "the 4711 and {name} jump")
    assert found.text == "the 4711 and {name} jump"
    assert [item.means for item in found.protected] == [Means.STAND_IN, Means.AS_IS]


def test_a_kind_that_is_never_copied_is_not_sent_as_it_is(bundle: Bundle) -> None:
    engine = Rewriting(bundle, lambda text: text.replace("{", "").replace("%", ""))
    pipeline = Pipeline(engine, TranslationLimits(), checks_copying=True)
    request = TranslationRequest(("the {dog} jumps", "the dog_x jumps"), "en", "de", KEPT_NOTATION)
    result = asyncio.run(pipeline.translate(request))
    assert [each.text for each in result.translations] == ["the {dog} jumps", "the dog_x jumps"]
    assert [item.means for each in result.translations for item in each.protected] == [Means.NAME, Means.AS_IS]
    assert len(engine.batches) == 2  # the samples, once, and the sentences
    decode = open_tokenizer(bundle).decode
    samples = [decode(sample.source.tolist()) for sample in engine.batches[0]]
    assert sorted(samples) == ["%s", "--verbose", "max_length", "{name}"]  # of the two kinds only
    asyncio.run(pipeline.translate(request))
    assert len(engine.batches) == 3
    asyncio.run(pipeline.translate(replace(request, texts=("the {dog} jumps at @anna",))))
    assert len(engine.batches) == 5  # the samples of the kind that is new


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the 4711 jumps", "the 4711 sees"),
        ("two of 4711 jump", "the 2 of 4711 jump"),  # a number in words may become digits
    ],
)
def test_an_answer_with_an_invented_number_is_the_last_choice(bundle: Bundle, text: str, expected: str) -> None:
    engine = Answering(bundle, "the 2 of 4711 jump", "the 4711 sees")
    [found] = _translate(engine, text, options=DecodingOptions(localize_numbers=False, beam_size=2))
    assert (found.text, len(engine.batches)) == (expected, 1)


def test_an_answer_with_an_invented_number_is_better_than_none(bundle: Bundle) -> None:
    engine = Answering(bundle, "the 2 of 4711 jump", "the 4711 sees 66")
    [found] = _translate(engine, "the 4711 jumps", options=DecodingOptions(localize_numbers=False, beam_size=2))
    assert (found.text, len(engine.batches)) == ("the 2 of 4711 jump", 1)


def test_a_stand_in_that_was_written_twice_is_rejected(bundle: Bundle) -> None:
    engine = Rewriting(bundle, lambda text: text.replace("4711", "").replace("350", "350 and 350"))
    [found] = _translate(engine, "the 4711 jumps at 7:30")
    assert found.text == "the 4711 jumps at 7:30"


def test_a_common_placeholder_stands_in_for_one_that_the_model_breaks(bundle: Bundle) -> None:
    engine = Rewriting(bundle, lambda text: text.replace("count", "couch"))
    [found] = _translate(engine, "the {count} dogs jump")
    assert (found.text, [item.means for item in found.protected]) == ("the {count} dogs jump", [Means.STAND_IN])
