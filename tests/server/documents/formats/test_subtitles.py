"""WebVTT and SubStation Alpha, and the line breaks of all subtitles."""

import contextlib
import random
from collections.abc import Sequence

import pytest
import srt
from hypothesis import given, settings
from hypothesis import strategies as st

from server.documents.rewriting import Translate
from server.interface.errors import DocumentTooComplex, InvalidDocument
from tests.server.documents.documents import LOUD, SAME, read_soon, translated

VTT = """WEBVTT - a title
Kind: captions

STYLE
::cue { color: red }

NOTE this stays

intro
00:01.000 --> 00:02.000 align:start position:10%
Good <b>morning</b>
dear <c.loud>friends</c> &amp; others

00:00:03.000 --> 00:00:04.500
<v Tom Smith>Where is <00:00:03.500>it?</v>

00:05.000 --> 00:06.000
- Who?
- Me.
"""
ASS = """[Script Info]
; comment stays
Title: My film

[V4+ Styles]
Format: Name, Fontname
Style: Default,Arial

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Comment: 0,0:00:00.00,0:00:01.00,Default,,0,0,0,,not this
Dialogue: 0,0:00:01.00,0:00:02.00,Default,Tom,0,0,0,,Good {\\i1}morning{\\i0},\\Nmy friend
Dialogue: 0,0:00:02.00,0:00:03.00,Default,,0,0,0,,{\\p1}m 0 0 l 100 0{\\p0}
"""


@pytest.mark.parametrize(("extension", "text"), [(".vtt", VTT), (".ass", ASS)])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_subtitles_are_the_same_byte_for_byte_when_nothing_changes(extension: str, text: str, line_end: str) -> None:
    content = text.replace("\n", line_end).encode("utf-8-sig")
    assert translated(content, extension, SAME) == content


def test_cues_of_webvtt_are_translated_and_everything_else_stays() -> None:
    result = translated(VTT.encode(), ".vtt", LOUD).decode()
    assert result == (
        VTT.replace("Good <b>morning", "GOOD <b>MORNING")
        .replace("dear <c.loud>friends</c> &amp; others", "DEAR <c.loud>FRIENDS</c> &amp; OTHERS")
        .replace("Where is <00:00:03.500>it?", "WHERE IS <00:00:03.500>IT?")
        .replace("- Who?\n- Me.", "- WHO?\n- ME.")
    )


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    "text",
    [
        "WEBVTT\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:900000\nKind: captions\n00:01.000 --> 00:02.000\nthe sea\n",
        "WEBVTT\n\nNOTE one line\n\nmy own\nlong name\n00:01.000 --> 00:02.000\nthe sea\n",
        "WEBVTT\n\n00:01.000 --> 00:02.000\n \nthe sea\n\n00:02.000 --> 00:03.000\nthe sea\n\t\nthe sea\n \n",
        "WEBVTT\n\n1\n00:01.000 --> 00:02.000\nthe sea\n2\n00:02.000 --> 00:03.000\nthe sea\n",
        "WEBVTT\n\n00:01,000-->00:02,000\nthe sea",
    ],
    ids=["header", "name", "white space", "no empty line", "times of SubRip"],
)
def test_a_cue_is_all_text_between_its_times_and_an_empty_line(text: str, line_end: str) -> None:
    content = text.replace("\n", line_end)
    assert translated(content.encode(), ".vtt", LOUD).decode() == content.replace("the sea", "THE SEA")


WORDS = st.text("ab ,.?!-", min_size=1, max_size=9).filter(lambda words: any(map(str.isalpha, words)))
CUE_LINES = st.lists(
    st.one_of(WORDS, st.sampled_from([" ", "\t", "<i>a</i>", "a <00:01.500>b"])), min_size=1, max_size=4
)


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(st.lists(CUE_LINES, min_size=1, max_size=4), st.sampled_from(["", "\nX-A=b", "\nKind: c\nX-A=b", "\n\nNOTE d"]))
def test_no_word_of_a_webvtt_cue_is_left(cues: list[list[str]], header: str) -> None:
    times = "00:01.000 --> 00:02.000"
    blocks = ["\n".join([times, *lines]) for lines in cues]
    content = f"WEBVTT{header}\n" + "\n\n".join(blocks) + "\n"
    result = translated(content.encode(), ".vtt", LOUD).decode()
    head, *texts = result.split(times)
    assert head == f"WEBVTT{header}\n"
    for lines, text in zip(cues, texts, strict=True):
        assert text.split() == "\n".join(lines).upper().replace("I>", "i>").split()
        assert text.rstrip("\n").count("\n") == len(lines)


@pytest.mark.parametrize("extension", [".ass", ".ssa"])
def test_tags_of_dialogues_stay_around_their_words(extension: str) -> None:
    dialogue = "[Events]\nDialogue: 0,0:0:1,0:0:2,,,0,0,0,,{}\n"
    text = r"{\an8}see {\i1}the sea{\i0} and {\c&HFF&}red {\p1}m 0 0 l 1 1{\p0}sand?\N{\k5}look {\k6}at it"
    loud = r"{\an8}SEE {\i1}THE SEA{\i0} AND {\c&HFF&}RED {\p1}m 0 0 l 1 1{\p0}SAND?\N{\k5}LOOK {\k6}AT IT"
    assert translated(dialogue.format(text).encode(), extension, LOUD).decode() == dialogue.format(loud)


def test_cues_of_microdvd_are_translated_with_their_frames_and_tags() -> None:
    text = "{1}{1}23.976\r\n{0}{25}/hello {y:b}there.|/{y:i}see it?\r\n{30}{}- who?|- me.\r\n\r\n{50}{60}42\r\n"
    loud = "{1}{1}23.976\r\n{0}{25}/HELLO {y:b}THERE.|/{y:i}SEE IT?\r\n{30}{}- WHO?|- ME.\r\n\r\n{50}{60}42\r\n"
    assert translated(text.encode(), ".sub", LOUD).decode() == loud


def test_cues_of_subviewer_are_translated_with_their_header_and_times() -> None:
    head = "[INFORMATION]\n[TITLE]a film\n[END INFORMATION]\n[SUBTITLE]\n[COLF]&HFFFFFF,[STYLE]bd\n"
    cues = "00:00:01.00,00:00:03.00\n{}[br]{}\n\n00:00:03.10,00:00:05.00\n{}\n{}\n\n\n00:00:08.00,00:00:09.00\n{}"
    text = head + cues.format("yes.", "no, a|b.", "where is it?", "here.", "bye!")
    loud = head + cues.format("YES.", "NO, A|B.", "WHERE IS IT?", "HERE.", "BYE!")
    assert translated(text.encode(), ".sub", LOUD).decode() == loud


@pytest.mark.parametrize(("times", "is_joined"), [(("{0}{50}", "{60}{90}"), True), (("{0}{50}", "{115}{190}"), False)])
def test_a_sentence_goes_on_in_the_next_cue_of_microdvd_by_its_frames(times: tuple[str, str], is_joined: bool) -> None:
    received: list[str] = []

    async def translate(texts: Sequence[str]) -> Sequence[str]:
        received.extend(texts)
        return texts

    content = f"{{1}}{{1}}50\n{times[0]}it was\n{times[1]}late today.\n".encode()
    assert translated(content, ".sub", Translate(translate)) == content
    assert len(received) == (1 if is_joined else 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [("hello\n", "neither MicroDVD nor SubViewer"), ("{1}{2}a\nb\n", "line 2 must begin with {first frame}")],
)
def test_what_is_no_sub_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidDocument, match=message):
        translated(text.encode(), ".sub", SAME)


def test_hard_spaces_of_substation_alpha_separate_words_where_they_stand() -> None:
    dialogue = "[Events]\nDialogue: 0,0:0:1,0:0:2,,,0,0,0,,{}\n"
    received: list[str] = []

    async def translate(texts: Sequence[str]) -> Sequence[str]:
        received.extend(texts)
        return [text.upper() for text in texts]

    content = dialogue.format("10\\hkm to\\hgo").encode()
    assert translated(content, ".ass", Translate(translate)).decode() == dialogue.format("10\\hKM TO\\hGO")
    assert received == ["10\xa0km to\xa0go"]
    empty = dialogue.format("\\h {x}\\h").encode()
    assert translated(empty, ".ass", LOUD) == empty


def test_all_tags_of_webvtt_stay() -> None:
    cue = 'WEBVTT\n\n00:01.000 --> 00:02.000\n<font color="red">{}</font> <I>{}</I> {} < {} > {}<br/>{}\n'
    result = translated(cue.format(*"abcdef").encode(), ".vtt", LOUD).decode()
    assert result == cue.format(*"ABCDEF").replace(" < ", " &lt; ").replace(" > ", " &gt; ")


def test_dialogues_of_substation_alpha_are_translated_with_their_breaks() -> None:
    result = translated(ASS.encode(), ".ass", LOUD).decode()
    *_, dialogue, drawing = result.splitlines()
    assert "\\N" in dialogue
    assert dialogue.startswith("Dialogue: 0,0:00:01.00,0:00:02.00,Default,Tom,0,0,0,,")
    assert "{\\i1}" in dialogue
    assert "{\\i0}" in dialogue
    assert drawing == ASS.splitlines()[-1]
    assert result.splitlines()[:-2] == ASS.splitlines()[:-2]


@pytest.mark.parametrize(
    ("extension", "head"),
    [(".srt", "1\n00:00:01,000 --> 00:00:02,000\n"), (".vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\n")],
)
@pytest.mark.parametrize("num_lines", [1, 2, 3, 4])
@pytest.mark.parametrize("factor", [1, 3])
def test_a_cue_has_as_many_lines_as_before(extension: str, head: str, num_lines: int, factor: int) -> None:
    async def longer(texts: list[str]) -> list[str]:
        return [" ".join(["word"] * len(text.split()) * factor) for text in texts]

    cue = "\n".join(["a few words of text", "and more here", "then a third line of it", "end of it"][:num_lines])
    result = translated(f"{head}{cue}\n\n".encode(), extension, Translate(longer)).decode()  # type: ignore[arg-type]
    lines = result.removeprefix(head).rstrip("\n").split("\n")
    assert len(lines) == num_lines
    assert all(lines)
    shares = [len(line) / len("".join(lines)) for line in lines]
    expected = [len(line) / len(cue) for line in cue.split("\n")]
    assert all(abs(share - wanted) < 0.25 for share, wanted in zip(shares, expected, strict=True))


@pytest.mark.parametrize(
    ("extension", "text", "reason"),
    [
        (".vtt", "Just a letter.", "line 1 must begin with WEBVTT"),
        (".ass", "Just a letter.", "line 1 must be in a section"),
        (".ass", "[Events]\nFormat: Start, Text, End\n", "the last field in line 2 must be Text"),
        (".ass", "[Events]\nDialogue: 0,1,2\n", "line 2 must have 10 fields. Given: 3"),
    ],
)
def test_text_that_is_no_subtitles_is_rejected_with_its_line(extension: str, text: str, reason: str) -> None:
    with pytest.raises(InvalidDocument, match=reason):
        translated(text.encode(), extension, SAME)


@pytest.mark.parametrize(
    "unit", ["<b>", "<v ", "<0", "{", "{\\p", "\\N", "-", " ", "\n", "a\n", "00:01.000 --> ", ",", "&"]
)
def test_a_long_cue_of_anything_is_read_soon(unit: str) -> None:
    for extension, head in (
        (".vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\n"),
        (".ass", "[Events]\nDialogue: 1,2,3,4,5,6,7,8,9,"),
    ):
        with contextlib.suppress(InvalidDocument, DocumentTooComplex):
            read_soon(head + unit * (100_000 // len(unit)), extension)


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


@pytest.mark.parametrize(
    "text",
    [
        "\n\n1\n0:0:1.5 --> 0:0:2.25  X1:4\nGood\n\n\n\n2\n00:00:03,000 --> 00:00:04,000\nmorning",
        "1\n\n00:00:01,000 --> 00:00:02,000\n\nGood\n\n2\n\n00:00:03,000 --> 00:00:04,000\n\nmorning\n\n",
        "0001\r\n00:00:01,000 -> 00:00:02,000\r\nGood\r\nmorning  \r\n\r\n2.5\r\n00:00:01,000 --> 00:00:02,000\r\n4",
        "1\n00:00:01,000 --> 00:00:02,000\n\n2\n00:00:01,000 --> 00:00:02,000\nGood\n  \nmorning \t\n \n",
        "1\n00:00:01,000 --> 00:00:02,000\n<i>- Good\n- <b>mor</b>ning</i>\n",
    ],
)
def test_everything_but_the_texts_stays(text: str) -> None:
    assert translated(text.encode(), ".srt", SAME).decode() == text
    assert translated(text.encode(), ".srt", LOUD).decode() == (
        text.replace("Good", "GOOD").replace("mor", "MOR").replace("ning", "NING")
    )


def test_cues_are_those_that_another_reader_finds() -> None:
    chance = random.Random(1)
    lines = ["", "Good", "- morning", "<i>X</i>", "A 7", "7", "00:01 B"]
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
