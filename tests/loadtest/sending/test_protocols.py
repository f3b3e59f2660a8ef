import json
from dataclasses import replace

import pytest

from loadtest.sending.protocols import (
    Answer,
    EventReader,
    WrongAnswer,
    protocol,
    server_timing,
)
from loadtest.workload.requests import TextRequest

ONE = TextRequest(0, "k", "native", ("Good morning.",), None, "en", "de", None, 1)
TWO = replace(ONE, texts=("Good morning.", "Füße."), beam_size=4, num_sentences=2)


def _body(name: str, request: TextRequest) -> object:
    call = protocol(name).http_request(request)
    assert call.method == "POST"
    assert call.headers["Content-Type"] == "application/json"
    return json.loads(call.body)


@pytest.mark.parametrize("name", ["native", "stream"])
def test_options_become_fields_of_the_request(name: str) -> None:
    body = _body(name, replace(TWO, options={"max_length_ratio": 1, "text": "other"}))
    assert body == _body(name, TWO) | {"max_length_ratio": 1}  # type: ignore[operator]  # an object


def test_native_tokens_are_summed_if_every_translation_has_them() -> None:
    both = [
        {"text": "Guten Morgen.", "source_tokens": 3, "target_tokens": 4},
        {"text": "Feet.", "source_tokens": 2, "target_tokens": 2},
    ]
    read = protocol("native").read_answer
    assert read(_translations(both), TWO) == Answer(("Guten Morgen.", "Feet."), 5, 6)
    assert read(_translations([both[0], {"text": "Feet."}]), TWO) == Answer(("Guten Morgen.", "Feet."))


@pytest.mark.parametrize("name", ["native", "deepl"])
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[]", "not an object"),
        (b"{}", "no list of translations"),
        (b'{"translations": {"text": "a"}}', "no list of translations"),
        (b'{"translations": []}', "0 translations of 1 texts"),
        (b'{"translations": [{"text": "a"}, {"text": "b"}]}', "2 translations of 1 texts"),
        (b'{"translations": ["a"]}', "not an object"),
        (b'{"translations": [{"text": null}]}', "no text"),
        (b'{"translations": [{"text": " "}]}', "empty"),
    ],
)
def test_an_answer_to_something_else_is_wrong(name: str, body: bytes, reason: str) -> None:
    with pytest.raises(WrongAnswer, match=reason):
        protocol(name).read_answer(body, ONE)


@pytest.mark.parametrize(
    ("request_", "text", "reason"),
    [
        (ONE, '["a"]', "no text"),
        (ONE, '""', "empty"),
        (TWO, '"a"', "no list of 2"),
        (TWO, '["a"]', "no list of 2"),
        (TWO, '["a", " "]', "empty"),
    ],
)
def test_a_libretranslate_answer_to_something_else_is_wrong(request_: TextRequest, text: str, reason: str) -> None:
    with pytest.raises(WrongAnswer, match=reason):
        protocol("libretranslate").read_answer(f'{{"translatedText": {text}}}'.encode(), request_)


def _translations(items: list[dict[str, object]]) -> bytes:
    return json.dumps({"translations": items}).encode()


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
        protocol("stream").read_answer(STREAM.replace(old, new).encode(), REQUEST)


def test_a_stream_that_was_cut_off_is_wrong() -> None:
    with pytest.raises(WrongAnswer, match="no end"):
        protocol("stream").read_answer(STREAM.partition("event: done")[0].encode(), REQUEST)
    with pytest.raises(WrongAnswer, match="no end"):
        protocol("stream").read_answer(b"", REQUEST)


@pytest.mark.parametrize(
    ("header", "durations"),
    [
        ("", {}),
        ("tokenize;dur=0.25, queue;dur=12, total;dur=40.5", {"tokenize": 0.25, "queue": 12.0, "total": 40.5}),
        ('cache;desc="hit, warm", db;dur="3.5";desc=x', {"db": 3.5}),
        ("a;dur=soon,b;DUR=1", {"b": 1.0}),
    ],
)
def test_the_durations_of_server_timing_are_read(header: str, durations: dict[str, float]) -> None:
    assert server_timing(header) == durations
