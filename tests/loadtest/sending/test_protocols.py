import json
from dataclasses import replace

import pytest

from loadtest.sending.protocols import (
    Answer,
    Event,
    EventReader,
    WrongAnswer,
    protocol,
    retry_after_seconds,
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


def test_native_sends_one_text_as_a_string_and_leaves_to_the_server_what_is_not_chosen() -> None:
    assert _body("native", ONE) == {"text": "Good morning.", "source": "en", "target": "de"}
    assert _body("native", TWO) == {
        "text": ["Good morning.", "Füße."],
        "source": "en",
        "target": "de",
        "beam_size": 4,
    }
    assert protocol("native").http_request(ONE).path == "/v1/translate"


def test_stream_is_the_native_request_with_events() -> None:
    call = protocol("stream").http_request(TWO)
    native = protocol("native").http_request(TWO)
    assert json.loads(call.body) == json.loads(native.body) | {"stream": True}
    assert (call.path, call.headers["Accept"]) == ("/v1/translate", "text/event-stream")


@pytest.mark.parametrize("name", ["native", "stream"])
def test_options_become_fields_of_the_request(name: str) -> None:
    body = _body(name, replace(TWO, options={"max_length_ratio": 1, "text": "other"}))
    assert body == _body(name, TWO) | {"max_length_ratio": 1}  # type: ignore[operator]  # an object


def test_libretranslate_sends_q() -> None:
    assert _body("libretranslate", ONE) == {"q": "Good morning.", "source": "en", "target": "de", "format": "text"}
    assert _body("libretranslate", replace(TWO, beam_size=None)) == {
        "q": ["Good morning.", "Füße."],
        "source": "en",
        "target": "de",
        "format": "text",
    }
    assert protocol("libretranslate").http_request(ONE).path == "/translate"


@pytest.mark.parametrize(
    ("beam_size", "model_type"),
    [(None, {}), (1, {"model_type": "latency_optimized"}), (4, {"model_type": "quality_optimized"})],
)
def test_deepl_sends_a_list_and_names_beam_search_quality(beam_size: int | None, model_type: dict[str, str]) -> None:
    languages = {"source_lang": "EN", "target_lang": "DE"}
    assert _body("deepl", replace(ONE, beam_size=beam_size)) == {"text": ["Good morning."], **languages, **model_type}
    assert protocol("deepl").http_request(ONE).path == "/v2/translate"


@pytest.mark.parametrize("name", ["native", "stream", "libretranslate", "deepl"])
def test_a_request_can_bypass_the_cache(name: str) -> None:
    assert protocol(name).http_request(ONE, bypass_cache=True).headers["Cache-Control"] == "no-cache"
    assert "Cache-Control" not in protocol(name).http_request(ONE).headers


def test_native_tokens_are_summed_if_every_translation_has_them() -> None:
    both = [
        {"text": "Guten Morgen.", "source_tokens": 3, "target_tokens": 4},
        {"text": "Feet.", "source_tokens": 2, "target_tokens": 2},
    ]
    read = protocol("native").read_answer
    assert read(_translations(both), TWO) == Answer(("Guten Morgen.", "Feet."), 5, 6)
    assert read(_translations([both[0], {"text": "Feet."}]), TWO) == Answer(("Guten Morgen.", "Feet."))


def test_other_protocols_report_no_tokens() -> None:
    libretranslate, deepl = protocol("libretranslate").read_answer, protocol("deepl").read_answer
    assert libretranslate(b'{"translatedText": "Guten Morgen."}', ONE) == Answer(("Guten Morgen.",))
    assert libretranslate(b'{"translatedText": ["a", "b"]}', TWO) == Answer(("a", "b"))
    assert deepl(_translations([{"text": "a"}, {"text": "b"}]), TWO) == Answer(("a", "b"))


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


def test_there_is_no_other_protocol() -> None:
    with pytest.raises(KeyError):
        protocol("gopher")


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


def test_an_event_comes_as_soon_as_its_blank_line() -> None:
    reader = EventReader()
    assert reader.feed(b"event: text\ndata: a\n") == []
    assert reader.feed(b"\n") == [Event("text", "a")]


def test_lines_of_data_are_joined_and_an_event_without_a_name_is_a_message() -> None:
    assert EventReader().feed(b"data: a\ndata:  b\nid: 7\n\n\nevent: ping\n\n") == [Event("message", "a\n b")]


def test_a_stream_ends_in_the_same_answer() -> None:
    assert protocol("stream").read_answer(STREAM.encode(), REQUEST) == Answer(("Guten Morgen.", "Füße."), 5, 7)


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


def test_the_code_of_an_error_at_the_end_of_a_stream_is_reported() -> None:
    stream = STREAM.partition("event: done")[0] + 'event: error\ndata: {"error":{"code":"timeout"}}\n\n'
    with pytest.raises(WrongAnswer, match="ended in an error: timeout"):
        protocol("stream").read_answer(stream.encode(), REQUEST)


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


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(None, None), ("2", 2.0), ("0.5", 0.5), ("-1", 0.0), ("Wed, 21 Oct 2026 07:28:00 GMT", None)],
)
def test_retry_after_is_a_number_of_seconds_or_nothing(header: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(header) == seconds
