"""Subtitles that are not quite as they should be, and such as are built to do harm."""

import contextlib
import random
from collections.abc import Sequence

import pytest
import srt

from server.documents.rewriting import Translate
from server.interface.errors import InvalidDocument
from tests.server.documents.documents import LOUD, SAME, read_soon, translated

HEAD = "1\n00:00:01,000 --> 00:00:02,000\n"
NUM_CHARACTERS = 300_000


@pytest.mark.parametrize("before", ["", HEAD], ids=["bare", "cue"])
@pytest.mark.parametrize(
    "unit",
    [
        "1",
        " ",
        "\n",
        "\r\n",
        "\r",
        "1\n",
        " \n",
        "1:",
        "1:1:",
        "1 ",
        "1.",
        "-",
        "-\n",
        "- a\n",
        "<i ",
        "{\\",
        "a\n",
        "<i>",
    ],
)
def test_a_long_file_of_anything_is_read_soon(before: str, unit: str) -> None:
    content = before + unit * (NUM_CHARACTERS // len(unit))
    with contextlib.suppress(InvalidDocument):
        read_soon(content, ".srt")


@pytest.mark.parametrize("between", ["1" * 100_000, " " * 100_000, "-" * 100_000, "00:00:01,000 -" + " " * 100_000])
def test_a_long_line_that_is_almost_one_of_times_is_read_soon(between: str) -> None:
    content = (HEAD + f"Good\n00:00:01,000{between}\n") * 10
    with contextlib.suppress(InvalidDocument):
        read_soon(content, ".srt")


@pytest.mark.parametrize(
    "text",
    [
        "\n\n1\n0:0:1.5 --> 0:0:2.25  X1:4\nGood\n\n\n\n2\n00:00:03,000 --> 00:00:04,000\nmorning",
        "1\n\n00:00:01,000 --> 00:00:02,000\n\nGood\n\n2\n\n00:00:03,000 --> 00:00:04,000\n\nmorning\n\n",
        "00:00:01,000 --> 00:00:02,000\nGood\n00:00:03,000-->00:00:04,000\nmorning\n",
        "0001\r\n00:00:01,000 -> 00:00:02,000\r\nGood\r\nmorning  \r\n\r\n2.5\r\n00:00:01,000 --> 00:00:02,000\r\n4",
        "1\r00:00:01,000 --> 00:00:02,000\rGood\rmorning\r\r",
        "1\n00:00:01,000 --> 00:00:02,000\n\n2\n00:00:01,000 --> 00:00:02,000\nGood\n  \nmorning \t\n \n",
        "1\n00:00:01,000 --> 00:00:02,000\n<i>- Good\n- <b>mor</b>ning</i>\n",
        " \n",
    ],
)
def test_everything_but_the_texts_stays(text: str) -> None:
    assert translated(text.encode(), ".srt", SAME).decode() == text
    assert translated(text.encode(), ".srt", LOUD).decode() == (
        text.replace("Good", "GOOD").replace("mor", "MOR").replace("ning", "NING")
    )


def test_cues_are_those_that_another_reader_finds() -> None:
    chance = random.Random(1)
    lines = ["", "Good", "- morning", "<i>x</i>", "a 7", "7", "00:01 b"]
    for _ in range(200):
        contents = [chance.choices(lines, k=chance.randrange(4)) for _ in range(5)]
        text = "".join(
            f"{number}\n00:00:0{number},000 --> 00:00:0{number},500\n" + "\n".join(["A", *content]) + "\n\n"
            for number, content in enumerate(contents)
        )
        loud = translated(text.encode(), ".srt", LOUD).decode()
        assert _cues(loud) == _cues(text.upper().replace("I>", "i>"))


def _cues(text: str) -> list[tuple[object, ...]]:
    return [(cue.index, cue.start, cue.end, cue.content.split()) for cue in srt.parse(text)]


def test_a_sentence_goes_on_behind_a_line_end_and_a_tag() -> None:
    asked: list[str] = []

    async def remember(texts: Sequence[str]) -> list[str]:
        asked.extend(texts)
        return list(texts)

    text = HEAD + "We are <b>not</b> going\nto the <i>station</i>.\n\n" + HEAD + "- And <b>you</b> there?\n- Fine.\n"
    assert translated(text.encode(), ".srt", Translate(remember)).decode().count("\n") == text.count("\n")
    assert asked == ["We are not going to the station.", "And you there?", "Fine."]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("A letter\n" + HEAD + "Good\n", "line 1 must follow a line of the form"),
        (HEAD + "Good\n\n2\n00:00:03,000 00:00:04,000\nmorning\n", "line 6 must have the form `start --> end`"),
        (HEAD + "<i>" * 65 + "Good\n", "nested 64 deep. The cue in line 3 has more"),
        (HEAD + "a\n" * 16_000, "may have 30000 characters. The cue in line 3 has 32000"),
    ],
)
def test_an_error_names_its_line(text: str, reason: str) -> None:
    with pytest.raises(InvalidDocument, match=reason):
        translated(text.encode(), ".srt", SAME)
