"""Markers, spans and white space of plain text stay; the words are the model input."""

import asyncio
import threading

import pytest

from server.interface.errors import DeadlineExceeded
from server.text.readers.plain_text import read_text
from server.text.readers.units import Unit
from server.text.unknown_characters import UnknownCharacters
from server.translation import reading
from server.translation.attempts import Attempts
from server.translation.execution import PROTECTED_TEXTS
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import TranslationRequest
from tests.server.text.identity import Identity

UNKNOWN = UnknownCharacters(map(chr, range(0x3000)))


@pytest.mark.parametrize(
    ("text", "inputs"),
    [
        (
            "# Where is it?\n\n> the dog\n\n- tea\n* the fox\n1. one\n2) two\n",
            "Where is it?|the dog|tea|the fox|one|two",
        ),
        ("  - [ ] tea\n\t- the dog\r\n", "tea|the dog"),
        ("the **lazy** *dog* is _here_ and ~~there~~", "the lazy dog is here and there"),
        ('see [the dog](http://x.org/a_(b) "t") and ![a fox](f.png)', "see the dog and a fox"),
        ("call `rm -rf *` now", "call `rm -rf *` now"),
        ("```\nWhere is it?\n```\nthe dog", "the dog"),
        ("| the dog | tea |\n|---|---|\n| a | b |\n", "the dog|tea|a|b"),
        ("the dog\t4711\ttea\t \tthe fox\nlazy", "the dog|tea|the fox|lazy"),
        ("the dog\\nthe fox\\r\\n<BR>tea<br/>||is", "the dog|the fox|tea|is"),
        ("the dog.\\\\nThe fox\\\\r\\\\nTea\\u000Ais", "the dog.|The fox|Tea|is"),
        ("the dog¶the fox ↵ tea[br]is<br class='a'>Tom&#10;a", "the dog|the fox|tea|is|Tom|a"),
        ("the dog.%nThe fox!\\NTea", "the dog.|The fox!|Tea"),
        ("the %n dog, %nfoxes and C:\\New", "the %n dog, %nfoxes and C:\\New"),
        ("the dog\\n• the fox\\n1. tea<br>2. one", "the dog|the fox|tea|one"),
        ("the dog %|2$d| tea", "the dog %/2$d/ tea"),
        ("**the dog**", "the dog"),
        ("a * b * c and x_y_z and 2*3*4", "a * b * c and x_y_z and 2*3*4"),
        ("WHERE IS {name}?", "WHERE IS {name}?"),
        (".. note:: the dog\n..  note:: the fox", "the dog|the fox"),
        ("the dog isn''t {0}", "the dog isn't {0}"),
        ("the dog isn''t '{0}'", "the dog isn''t '{0}'"),
        ("_Where is &the dog", "_Where is &the dog"),
        ("Where is _the dog...", "Where is the dog..."),
        ("&Where is it?", "Where is it?"),
        ("the &dog & tea", "the &dog & tea"),
        ("the fox&dog and my_tea", "the fox&dog and my_tea"),
        (", the dog and tea\n) the fox", "the dog and tea|the fox"),
        ("the dog    tea\n       4711    the fox", "the dog|tea|the fox"),
        ("the dog:     tea", "the dog:|tea"),
        ("Where is {n, plural,\r\n\tone {the dog}\r\n\tother {# tea\r\nthe fox}\r\n}", "Where is|the dog|tea|the fox"),
        ("a) the dog\nb) the fox", "the dog|the fox"),
        ("the dog\n: the fox\n:   tea", "the dog|the fox|tea"),
        ("the dog  jumps 🎉", "the dog  jumps"),
        ("🎉 the dog", "the dog"),
        ("\u2066the dog\u2069 jumps \u202efox\u202c", "the dog jumps fox"),
    ],
)
def test_markers_stay_and_are_not_read_by_the_model(identity: Identity, text: str, inputs: str) -> None:
    identity.engine.batches.clear()
    [translation] = identity([text])
    assert " ".join(translation.split()) == " ".join(text.split())
    assert sorted(identity.model_inputs) == sorted(
        " ".join(each.split()).replace("/", "|") for each in inputs.split("|")
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n ",
        "---",
        "{name}",
        "%s: %d\n",
        "https://x.org/where",
        "`the dog`",
        "🎉🎉",
        "**",
        "1.",
        "42",
        "5 €",
        "# ",
    ],
)
def test_a_text_with_nothing_to_translate_comes_back_as_it_is(identity: Identity, text: str) -> None:
    identity.engine.batches.clear()
    assert identity([text]) == [text]
    assert identity.model_inputs == []


@pytest.mark.parametrize(
    "text", ["  a\n\n\tb  \r\n", "\n", "- a\n  - b\n\n\n", "a\x0bb\x0cc", "{x}\n\n  %s  \n", "\ud800 {a}"]
)
def test_white_space_and_line_breaks_stay(identity: Identity, text: str) -> None:
    assert identity([text]) == [text.replace("\ud800", "\ufffd")]


@pytest.mark.parametrize("format_", ["text", "html"])
@pytest.mark.parametrize("character", "\N{SOFT HYPHEN}\N{WORD JOINER}\N{ZERO WIDTH NO-BREAK SPACE}")
def test_characters_inside_words_that_nobody_sees_are_not_read(
    identity: Identity, character: str, format_: str
) -> None:
    identity.engine.batches.clear()
    assert identity([f"the d{character}og jumps"], format_) == ["the dog jumps"]  # type: ignore[arg-type]
    assert identity.model_inputs == ["the dog jumps"]


MARKERS = "-_*_+_•_‣_▪_◦_:_–_—_1._1)_(1)_a)_#_[ ]_[x]_>_|"


@pytest.mark.parametrize("start", MARKERS.split("_"))
def test_each_marker_at_the_beginning_of_lines_is_found(start: str) -> None:
    text = f"{start} the fox\n  {start} the dog"
    assert [part.text for part in read_text(text, UNKNOWN) if isinstance(part, Unit)] == ["the fox", "the dog"]


@pytest.mark.parametrize("text", ["24. Dezember", "- so he said", "a) or b)", "NATO is big, and so is it.", "a: b c"])
def test_a_line_of_everyday_text_is_one_plain_unit(text: str) -> None:
    [unit] = (part for part in read_text(text, UNKNOWN) if isinstance(part, Unit))
    assert (unit.text, unit.is_plain) == (text, True)


def test_a_long_text_is_not_read_on_the_event_loop(identity: Identity, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[threading.Thread] = set()
    stages = [(reading, "read_text"), (Attempts, "_first"), (Attempts, "_restore"), (Attempts, "_judge")]
    for stage, name in stages:
        plain = getattr(stage, name)

        def watched(*args: object, plain=plain) -> object:  # type: ignore[no-untyped-def]
            threads.add(threading.current_thread())
            return plain(*args)

        monkeypatch.setattr(stage, name, watched)
    identity(["the dog {name}\n" * 300])
    assert threads
    assert threading.current_thread() not in threads


def test_a_long_text_whose_time_is_up_while_it_waits_is_never_read(
    identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    may_go_on = threading.Event()
    others = [PROTECTED_TEXTS.submit(may_go_on.wait) for _ in range(PROTECTED_TEXTS._max_workers)]
    request = TranslationRequest(("<p>the dog {name}" * 1000,), "en", "de", timeout_seconds=0.05, format="html")
    try:
        with monkeypatch.context() as patched:
            patched.setattr(reading, "read_html", lambda text, options: read.append(text))
            with pytest.raises(DeadlineExceeded, match=r"within 0\.05 seconds"):
                asyncio.run(identity.pipeline.translate(request))
        assert identity(["the dog " * 1000]) == ["the dog " * 1000]  # does not wait for those threads
    finally:
        may_go_on.set()
        for other in (*others, PROTECTED_TEXTS.submit(bool)):
            other.result()
    assert read == []


def test_a_text_is_not_read_on_when_its_time_is_up(identity: Identity) -> None:
    times = iter([0.0, 0.0, 0.5, 0.5, 2.0])  # arrival, timeout, two lines, and the line that is too late
    pipeline = Pipeline(identity.engine, TranslationLimits(), clock=lambda: next(times))
    request = TranslationRequest(("the dog {name}\n" * 1000,), "en", "de", timeout_seconds=1.0)
    with pytest.raises(DeadlineExceeded, match="within 1 seconds"):
        asyncio.run(pipeline.translate(request))
