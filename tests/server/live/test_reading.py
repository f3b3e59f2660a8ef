import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from server.live.growing_text import GrowingText
from server.live.policies import policy_of
from server.live.reading import Mask, Reading
from server.text.spans import find_spans
from tests.server.live.conftest import Told

SIGNS = ("Z1", "Z2", "[3]")


def _read(text: str, held: Sequence[Mask] = (), signs: Sequence[str] = SIGNS) -> Reading:
    return Reading.of(text, find_spans(text), signs, held)


def test_masks_stand_for_spans_and_words_are_those_of_the_sentence() -> None:
    text = "Ask (me@example.org) or {{ the name }}!"
    reading = _read(text)
    assert reading.text == "Ask (Z1) or Z2!"
    assert [text[start:end] for start, end in reading.words] == ["Ask", "(me@example.org)", "or", "{{ the name }}!"]
    assert reading.restored("Z2 oder (Z1), Z1") == "{{ the name }} oder (me@example.org), me@example.org"
    assert reading.restored("Z1000 und XZ2") == "Z1000 und XZ2"
    assert reading.has_words


def test_a_span_that_touches_words_is_read_apart_from_them() -> None:
    assert _read("访问https://example.org。谢谢").text == "访问 Z1。谢谢"
    assert not _read("https://example.org 5 {name}").has_words


def test_signs_that_a_sentence_contains_or_that_run_out_stand_for_nothing() -> None:
    assert _read("XX is {a}, {b}, {c}", signs=("XX", "Z2", "[3]")).text == "XX is Z2, [3], {c}"
    assert _read("{a}", signs=()).text == "{a}"


def test_committed_masks_keep_their_spans() -> None:
    held = (Mask("Z1", "{b}", 9), Mask("Z2", "{gone}", 20))
    reading = _read("Not {a} but {b} {b}", held)
    assert [(each.sign, each.text) for each in reading.masks] == [("[3]", "{a}"), ("Z1", "{b}"), ("Z2", "{gone}")]
    assert reading.text == "Not [3] but Z1 {b}"


async def _grown(told: Told, text: str, policy: str, frame: int, step: int) -> list[str]:
    """Add characters, some at a time; return what is committed after each time."""
    model, live = told.model(), GrowingText(*told.languages, policy_of(policy, frame))
    shown = [""]
    for start in range(0, len(text), step):
        live.append(text[start : start + step])
        if start + step >= len(text):
            live.finish()
        update = await told.translate(live, model)
        shown.append(shown[-1] + "".join(piece.text for piece in update.pieces))
    return shown


@pytest.mark.parametrize(
    ("policy", "frame"), [("align-att", 0), ("align-att", 2), ("local-agreement", 0), ("wait-k", 1)]
)
def test_a_span_is_committed_whole_or_not_at_all_while_it_grows(policy: str, frame: int, told: Told) -> None:
    spans = ("me@example.org", "https://example.org/help?x=1", "🎉")
    text = f"Please write to {spans[0]} or visit {spans[1]} now. We are happy {spans[2]} today."
    shown = asyncio.run(_grown(told, text, policy, frame, step=3))
    for span in spans:
        assert shown[-1].count(span) == 1, shown[-1]
    for before in shown:
        assert before.count("@") == before.count(spans[0])
        assert before.count("https:") == before.count(spans[1])


def test_a_span_that_the_translation_lacks_follows_it(told: Told) -> None:
    async def without_it() -> str:
        model, live = told.model(), GrowingText(*told.languages, policy_of("align-att", 1))
        live.append("Good {name} morning. ")
        [sentence] = live.sentences(model)
        asked = replace(sentence, reading=model.read("Good morning."))
        completions = await told.decoded({sentence: model.request(asked)})
        update = live.take([(sentence, model.decoded(asked.reading, completions[sentence]))], live.text)
        return "".join(piece.text for piece in update.pieces)

    assert asyncio.run(without_it()) == "Guten Morgen. {name}"


def test_an_address_that_is_revised_after_its_commitment_comes_again(told: Told) -> None:
    async def revised() -> str:
        model, live = told.model(), GrowingText(*told.languages, policy_of("align-att", 0))
        live.append("Please write to me@example.org soon and often")
        first = await told.translate(live, model)
        live.replace_from(16, "you@example.org soon. ")
        second = await told.translate(live, model)
        return "".join(piece.text for update in (first, second) for piece in update.pieces)

    shown = asyncio.run(revised())
    assert shown.count("me@example.org") == 1
    assert shown.count("you@example.org") == 1
