"""The OpenAI-compatible protocol, with engines that answer with their source."""

import asyncio
import contextlib
import json

import pytest
from starlette.testclient import TestClient
from starlette.types import Message

from server.http.protocols.openai.chat import CompletionStream
from server.http.state import RequestRecord
from server.interface.errors import QueueFull
from server.operations.metrics import Metrics
from server.translation.service import TranslationOutcome
from server.translation.text_stream import TextStream
from tests.fakes.echo import EchoGenerator

ENGLISH, GERMAN = "Where is the railway station?", "Wo ist der Bahnhof? Er ist 300 Meter von hier."


def _chat(client: TestClient, content: object = ENGLISH, system: str | None = None, **fields: object) -> object:
    messages = [] if system is None else [{"role": "system", "content": system}]
    body = {"messages": [*messages, {"role": "user", "content": content}], **fields}
    answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]["message"]["content"]


def _served_by(engines: list[EchoGenerator]) -> list[str]:
    return [engine.bundle.config.name for engine in engines if engine.batches]


@pytest.mark.parametrize(
    "address", ["/v1/chat/completions", "/chat/completions", "/compatible-mode/v1/chat/completions"]
)
def test_the_last_user_message_is_the_text(compatible: TestClient, address: str) -> None:
    messages = [
        {"role": "user", "content": "Tea."},
        {"role": "assistant", "content": "Tee."},
        {"role": "user", "content": [{"type": "text", "text": "Good "}, {"type": "text", "text": "morning."}]},
    ]
    body = {"model": "kvasir:en-de", "messages": messages, "temperature": 1.3, "max_tokens": 1, "tools": []}
    fields = compatible.post(address, json=body).json()
    assert fields.pop("id").startswith("chatcmpl-")
    assert isinstance(fields.pop("created"), int)
    usage = fields.pop("usage")
    assert 0 < usage["prompt_tokens"] < usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    message = {"role": "assistant", "content": "Good morning."}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    assert fields == {"object": "chat.completion", "model": "kvasir:en-de", "choices": choices}


@pytest.mark.parametrize(
    ("model", "text", "engine"),
    [
        ("kvasir:en-de", ENGLISH, "echo-en-de"),
        ("kvasir:German", ENGLISH, "echo-en-de"),
        ("kvasir:auto-en", GERMAN, "echo-de-en"),
        ("kvasir:zh-TW", ENGLISH, "echo-en-zh-Hant"),
        ("echo-en-de", ENGLISH, "echo-en-de"),
    ],
)
def test_a_model_names_the_languages(
    compatible: TestClient, engines: list[EchoGenerator], model: str, text: str, engine: str
) -> None:
    for each in engines:
        each.batches.clear()
    assert _chat(compatible, text, model=model) == text
    assert _served_by(engines) == [engine]


def test_the_translation_options_of_qwen_name_the_languages(
    compatible: TestClient, engines: list[EchoGenerator]
) -> None:
    for each in engines:
        each.batches.clear()
    options = {"source_lang": "auto", "target_lang": "German"}
    prompt = 'Translate into English:\n"""\nTea.\n"""'  # the text itself
    assert _chat(compatible, prompt, model="qwen-mt-turbo", translation_options=options) == prompt
    assert _served_by(engines) == ["echo-en-de"]


PROMPTS = {
    "Subtitle Edit": (None, "Translate from English to German, keep punctuation as input, do not censor:\n\n{}"),
    "pot": ("You are a professional translation engine.", 'Translate into German:\n"""\n{}\n"""'),
    "Ebook-Translator": (
        "You are a translator. Translate the given content from English to German only. Keep it.",
        "{}",
    ),
    "LunaTranslator": (
        "You are a translator. Please translate the following English text into German. Only that.",
        "{}",
    ),
    "Weblate": ("You translate from language 'en' in the style of x to language 'de' and nothing more.", "{}"),
    "KISS Translator": (
        "You are a professional, authentic machine translation engine. You only return the translation.",
        "Rules. Translate the Source Text below to German. Only that.\n\nSource Text: {}\n\nTranslated Text:",
    ),
    "Read Frog": (None, "Treat input as plain text input and translate it into German, output it only.\nInput:\n{}"),
    "Zotero": (
        None,
        "As an expert, provide a translation from en-US to de-DE of the academic text enclosed in 🔤. Keep phrases. "
        "The text is as follows:  🔤 {} 🔤  Provide the result and remove 🔤.",
    ),
    "deep-translator": (None, 'Translate the text below into german.\nText: "{}"'),
}


@pytest.mark.parametrize("program", PROMPTS)
@pytest.mark.parametrize("text", [ENGLISH, 'Tea.\n\n"Good morning."\nSource Text: water\n', "Tea: data:{}"])
def test_the_prompt_of_a_program_is_taken_apart(
    compatible: TestClient, engines: list[EchoGenerator], program: str, text: str
) -> None:
    for each in engines:
        each.batches.clear()
    system, user = PROMPTS[program]
    assert str(_chat(compatible, user.replace("{}", text), system, model="gpt-4o")).strip() == text.strip()
    assert set(_served_by(engines)) <= {"echo-en-de"}


def test_weblate_gets_as_many_parts_as_it_sent(compatible: TestClient) -> None:
    text = "Tea.\n==WEBLATE_PART==\nWater.\n==WEBLATE_PART==\nGood morning."
    assert _chat(compatible, text, PROMPTS["Weblate"][0]) == text


def test_a_batch_of_kiss_is_answered_in_json(compatible: TestClient) -> None:
    segments = [{"id": 7, "text": ENGLISH}, {"id": "x", "text": "Tea."}]
    user = json.dumps({"targetLanguage": "de", "segments": segments, "tone": "formal"})
    content = _chat(compatible, user, "Act as a translation API. Output JSON only.")
    assert [(each["id"], each["text"]) for each in json.loads(str(content))["translations"]] == [
        (7, ENGLISH),
        ("x", "Tea."),
    ]


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "user", "content": "Write a poem about tea."}]},
        {"model": "kvasir:ja", "messages": [{"role": "user", "content": "Tea."}]},
        {"model": "kvasir:en-de", "messages": []},
        {"model": "kvasir:en-de", "messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
        {"messages": [{"role": "user", "content": 'Translate into Klingonese:\n"""\nTea.\n"""'}]},
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_other_prompts_and_languages_are_rejected(
    compatible: TestClient, body: dict[str, object], stream: bool
) -> None:
    answer = compatible.post("/v1/chat/completions", json=body | {"stream": stream})
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"


def test_a_stream_has_chunks_that_every_client_can_split(compatible: TestClient) -> None:
    text = "Tea: data: water.\nGood morning."
    messages = [{"role": "user", "content": text}]
    body = {"model": "kvasir:en-de", "messages": messages, "stream": True, "stream_options": {"include_usage": True}}
    answer = compatible.post("/v1/chat/completions", json=body)
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    pieces = answer.text.split("data:")
    assert pieces[0] == ""
    assert all(piece.startswith(" ") and piece.endswith("\n\n") for piece in pieces[1:])
    *chunks, last, usage = [json.loads(piece) for piece in pieces[1:-1]]
    assert pieces[-1] == " [DONE]\n\n"
    assert {chunk["object"] for chunk in (*chunks, last, usage)} == {"chat.completion.chunk"}
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert "".join(chunk["choices"][0]["delta"]["content"] for chunk in chunks) == text
    assert last["choices"] == [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    assert usage["choices"] == []
    assert usage["usage"]["total_tokens"] > 0


def test_a_stream_of_several_parts_is_one_chunk(compatible: TestClient) -> None:
    text = "Tea.\n==WEBLATE_PART==\nWater."
    messages = [{"role": "system", "content": PROMPTS["Weblate"][0]}, {"role": "user", "content": text}]
    answer = compatible.post("/v1/chat/completions", json={"messages": messages, "stream": True})
    first = json.loads(answer.text.split("\n\n")[0].removeprefix("data: "))
    assert first["choices"][0]["delta"]["content"] == text


def test_the_list_of_models_serves_both_kinds_of_clients(compatible: TestClient) -> None:
    answer = compatible.get("/v1/models").json()
    assert (answer["object"], len(answer["models"]), bool(answer["pairs"])) == ("list", 3, True)
    names = [each["id"] for each in answer["data"]]
    assert {"echo-en-de", "kvasir:en-de", "kvasir:de", "kvasir:en-zh-Hant", "kvasir:zh-Hant"} <= set(names)
    assert {each["object"] for each in answer["data"]} == {"model"}
    assert [each["id"] for each in compatible.get("/models").json()["data"]] == names


def test_an_error_before_the_first_chunk_is_an_ordinary_response(
    compatible: TestClient, engines: list[EchoGenerator], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines[0], "error", QueueFull("full", 3.0))
    body = {"model": "kvasir:en-de", "messages": [{"role": "user", "content": "***\nTea."}], "stream": True}
    answer = compatible.post("/v1/chat/completions", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "queue_full")


@pytest.mark.parametrize(
    ("error", "code", "late"), [(QueueFull("full", 3.0), "queue_full", 429), (ValueError("defect"), None, None)]
)
def test_an_error_behind_the_first_chunk_ends_the_stream(error: Exception, code: str | None, late: int | None) -> None:
    record, sent = RequestRecord("id"), list[Message]()

    async def fail(stream: TextStream) -> TranslationOutcome:
        stream.add_text(0, "Tea. ")
        for _ in range(5):
            await asyncio.sleep(0)
        raise error

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    stream = CompletionStream(fail, None, record, Metrics(), {"id": "x"}, has_usage=False)
    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}
    with pytest.raises(ValueError, match="defect") if late is None else contextlib.nullcontext():
        asyncio.run(stream(scope, receive, send))
    body = b"".join(message.get("body", b"") for message in sent).decode()
    first, last = (json.loads(line.removeprefix("data: ")) for line in body.split("\n\n")[:2])
    assert sent[0]["status"] == 200
    assert "Tea. " in str(first)
    assert code in (None, last["error"]["code"])
    assert "defect" not in body
    assert not sent[-1].get("more_body", False)
    assert record.late_status == late
