import pytest

from loadtest.sending.protocols.event_stream import Event, EventReader
from loadtest.sending.protocols.protocol import Answer, WrongAnswer
from loadtest.sending.protocols.registry import protocol
from loadtest.workload.requests import TextRequest

REQUEST = TextRequest(0, "k", "stream", ("Good morning.", "Feet."), None, "en", "de", None, 2)

STREAM = (
    'event: text\ndata: {"index":0,"text":"Guten"}\n\n'
    ": still at work\n\n"
    'event: text\ndata: {"index":1,"text":"Füße."}\n\n'
    'event: text\ndata: {"index":0,"text":" Morgen."}\n\n'
    'event: done\ndata: {"translations":[{"text":"Guten Morgen.","source_tokens":3,"target_tokens":4},'
    '{"text":"Füße.","source_tokens":2,"target_tokens":3}],"timings":{"total":5}}\n\n'
)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
def test_events_are_the_same_wherever_the_chunks_are_cut(size: int, line_end: str) -> None:
    stream = STREAM.replace("\n", line_end).encode()
    reader = EventReader()
    events = [event for at in range(0, len(stream), size) for event in reader.feed(stream[at : at + size])]
    # The last carriage return may be half of a line break; nothing tells until more comes.
    events += reader.feed(b"\n") if line_end == "\r" else []
    assert [event.name for event in events] == ["text", "text", "text", "done"]
    assert events[1].data == '{"index":1,"text":"Füße."}'


def test_an_event_comes_as_soon_as_its_blank_line() -> None:
    reader = EventReader()
    assert reader.feed(b"event: text\ndata: a\n") == []
    assert reader.feed(b"\n") == [Event("text", "a")]


def test_lines_of_data_are_joined_and_an_event_without_a_name_is_a_message() -> None:
    assert EventReader().feed(b"data: a\ndata:  b\nid: 7\n\n\nevent: ping\n\n") == [Event("message", "a\n b")]


def test_a_stream_ends_in_the_same_answer() -> None:
    assert protocol("stream").read_answer(STREAM.encode(), {}, REQUEST) == Answer(("Guten Morgen.", "Füße."), 5, 7)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("event: done", "event: text2", "no end"),
        ("Guten Morgen.", "Guten Abend.", "deltas of the stream differ from its final text"),
        ('"index":1', '"index":2', "no text or an invalid index"),
        ('"index":1', '"index":null', "no text or an invalid index"),
        ('{"index":1,"text":"Füße."}', "Füße", "not JSON"),
        ('"text":"Füße.","source', '"text":"","source', "empty"),
    ],
)
def test_a_stream_whose_deltas_differ_from_its_end_is_wrong(old: str, new: str, reason: str) -> None:
    assert old in STREAM
    with pytest.raises(WrongAnswer, match=reason):
        protocol("stream").read_answer(STREAM.replace(old, new).encode(), {}, REQUEST)


def test_the_code_of_an_error_at_the_end_of_a_stream_is_reported() -> None:
    stream = STREAM.partition("event: done")[0] + 'event: error\ndata: {"error":{"code":"timeout"}}\n\n'
    with pytest.raises(WrongAnswer, match="ended in an error: timeout"):
        protocol("stream").read_answer(stream.encode(), {}, REQUEST)


def test_a_stream_that_was_cut_off_is_wrong() -> None:
    with pytest.raises(WrongAnswer, match="no end"):
        protocol("stream").read_answer(STREAM.partition("event: done")[0].encode(), {}, REQUEST)
    with pytest.raises(WrongAnswer, match="no end"):
        protocol("stream").read_answer(b"", {}, REQUEST)
