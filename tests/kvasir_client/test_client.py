import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import get_type_hints

import httpx2
import pytest

from kvasir_client import (
    AsyncClient,
    Client,
    ConnectionFailed,
    DocumentFailed,
    KeptSentence,
    NumberDifferences,
    Overloaded,
    ResponseError,
    TextDelta,
    TimedOut,
    TranslationDetails,
    TranslationResult,
)
from kvasir_client.options import (
    DocumentOptions,
    EmbeddingOptions,
    GenerationOptions,
    Options,
    ScoreOptions,
)
from tests.end_to_end.servers import Served

TEXTS = ["Good morning.", "The house is old. The garden is small."]


def test_one_text_gives_one_translation_and_a_list_gives_a_list(client: Client) -> None:
    one = client.translate(TEXTS[0], source="en", target="de")
    assert str(one) == one.text == "Guten Morgen."
    assert one.finish_reason == "stop"
    assert client.translate(TEXTS[:1]) == [one]
    assert client.translate(tuple(TEXTS))[0] == one


def test_details_are_read_into_their_types(client: Client) -> None:
    options: Options = {
        "beam_size": 4,
        "num_hypotheses": 2,
        "return_scores": True,
        "return_token_scores": True,
        "num_token_alternatives": 2,
        "return_alignments": True,
        "return_attention": True,
    }
    result = client.translate_with_details(TEXTS[0], source="auto", target="de", **options)
    [found] = result.translations
    assert result.model == "en-de"
    assert found.detected_language is not None
    assert found.detected_language.language == "en"
    assert found.translated
    assert found.alternatives is not None
    assert found.alternatives[0].score is not None
    assert found.sentences is not None
    [sentence] = found.sentences
    assert sentence.alignment is not None
    assert sentence.attention is not None
    assert sentence.token_alternatives is not None
    assert len(sentence.attention) + 1 == len(sentence.target_tokens) == len(sentence.token_alternatives)
    assert sentence.token_alternatives[0][0].score <= 0.0


def test_reports_and_the_quality_are_read_into_their_types(client: Client) -> None:
    written, german = "Good morning. The old houses of {owner} are there.", "Das ist schon ein deutscher Satz."
    found, kept = client.translate([written, german], source="en", target="de", return_quality=True, min_quality=1)
    assert kept.details == TranslationDetails(kept=[KeptSentence(german, "already_in_target_language")])
    assert found.quality is not None
    assert 0 < found.quality < 1
    details = found.details
    assert details is not None
    assert details.protected is not None
    assert [(each.text, each.kind) for each in details.protected] == [("{owner}", "placeholder")]
    assert details.quality is not None
    assert [each.text for each in details.quality] == ["Good morning.", "The old houses of {owner} are there."]
    assert details.quality == details.low_quality
    assert client.translate("Good morning.", source="en", target="de").details is None


def test_numbers_that_differ_are_named(client: Client) -> None:
    found = client.translate("Good morning.", source="en", target="de", target_prefix="Die 347 Hunde")
    assert found.details == TranslationDetails(numbers=NumberDifferences(invented=["347"]))


def test_a_stream_gives_the_text_and_then_the_result(client: Client) -> None:
    *parts, result = client.stream(TEXTS)
    assert isinstance(result, TranslationResult)
    texts = ["", ""]
    for part in parts:
        assert isinstance(part, TextDelta)
        texts[part.index] += part.text
    assert texts == [each.text for each in result.translations]


def test_the_asynchronous_client_gives_the_same(client: Client, served: Served, tmp_path: Path) -> None:
    document = tmp_path / "letter.txt"
    document.write_text("\n".join(TEXTS), encoding="utf-8")

    async def everything() -> tuple[object, ...]:
        async with AsyncClient(served.url) as asynchronous:
            *_, streamed = [part async for part in asynchronous.stream(TEXTS)]
            with pytest.raises(ResponseError, match="beam_size"):
                _ = [part async for part in asynchronous.stream(TEXTS, beam_size=99)]
            written = await asynchronous.translate_document(document)
            return (
                await asynchronous.translate(TEXTS),
                streamed,
                await asynchronous.score(TEXTS[:1], ["Guten Morgen."]),
                await asynchronous.models(),
                await asynchronous.limits(),
                await asynchronous.languages(),
                await asynchronous.detect(TEXTS[0]),
                written.read_text(encoding="utf-8"),
            )

    assert asyncio.run(everything()) == (
        client.translate(TEXTS),
        client.translate_with_details(TEXTS),
        client.score(TEXTS[:1], ["Guten Morgen."]),
        client.models(),
        client.limits(),
        client.languages(),
        client.detect(TEXTS[0]),
        client.translate_document(document, output=tmp_path / "again.txt").read_text(encoding="utf-8"),
    )


def test_a_translation_has_its_score(client: Client) -> None:
    good, bad = client.score([TEXTS[0]] * 2, ["Guten Morgen.", "Das Auto ist blau."])
    assert good.log_probability is not None
    assert bad.log_probability is not None
    assert good.log_probability > bad.log_probability


def test_languages_are_detected_and_listed(client: Client) -> None:
    assert [each.language for each in client.detect(TEXTS[0])] == ["en"]
    assert [[each.language for each in found] for found in client.detect([TEXTS[0], "42"])] == [["en"], []]
    assert [(each.language, each.name, each.target) for each in client.languages(name_language="fr")] == [
        ("de", "allemand", True),
        ("en", "anglais", False),
    ]


def test_options_of_a_document_are_sent(client: Client, tmp_path: Path) -> None:
    table = tmp_path / "table.data"
    table.write_bytes("id;text\nOne;Good morning.\n".encode("utf-16"))
    options: DocumentOptions = {"format": "csv", "delimiter": ";", "columns": "text", "encoding": "utf-16"}
    translated = client.translate_document(table, output=tmp_path / "out.data", **options)
    assert translated.read_text(encoding="utf-16").splitlines() == ["id;text", "One;Guten Morgen."]


def test_models_and_limits_are_read(client: Client) -> None:
    models = client.models()
    assert [(pair.source, pair.target) for pair in models.pairs] == [("en", "de")]
    assert models.models[0].num_parameters > 1_000_000
    assert client.limits().max_beam_size == 8


def test_a_document_comes_back_beside_the_original(client: Client, tmp_path: Path) -> None:
    document = tmp_path / "page.html"
    document.write_text("<p>Good <b>morning</b>.</p>", encoding="utf-8")
    written = client.translate_document(document)
    assert written == tmp_path / "page.de.html"
    assert "<p>" in written.read_text(encoding="utf-8")
    assert not list(tmp_path.glob("*.part"))


def test_a_document_that_cannot_be_translated_raises_and_is_deleted(client: Client, tmp_path: Path) -> None:
    broken = tmp_path / "broken.docx"
    broken.write_bytes(b"PK no archive")
    with pytest.raises(DocumentFailed, match=r"docx|ZIP|archive|document") as failed:
        client.translate_document(broken)
    assert failed.value.code
    document = client.submit_document(broken)
    client.delete_document(document.id)
    with pytest.raises(ResponseError) as gone:
        client.document(document.id)
    assert gone.value.status == 404
    with pytest.raises(ResponseError) as unsupported:
        client.submit_document(__file__)
    assert unsupported.value.status == 415


@pytest.mark.parametrize(
    "call", [Client.translate, lambda *arguments, **options: list(Client.stream(*arguments, **options))]
)
def test_an_error_has_the_code_and_message_of_the_server(client: Client, call: Callable[..., object]) -> None:
    with pytest.raises(ResponseError) as raised:
        call(client, "text", beam_size=99)
    assert raised.value.status == 422
    assert raised.value.code == "invalid_request"
    assert "beam_size" in raised.value.message
    assert raised.value.request_id


def test_a_missing_server_and_a_late_one_raise_their_own_errors(served: Served) -> None:
    with Client("http://127.0.0.1:9") as nowhere, pytest.raises(ConnectionFailed):
        nowhere.translate("text")
    with Client(served.url, timeout=0.001) as impatient, pytest.raises(TimedOut):
        # So long that it takes longer than the client may be kept from waiting.
        impatient.translate(" ".join(f"Tom has {number} dogs and a house." for number in range(60)), beam_size=8)


def test_a_rejected_request_is_sent_again_after_the_time_that_the_server_names() -> None:
    statuses = iter([429, 503, 200])
    seen: list[str | None] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers.get("authorization"))
        if (status := next(statuses)) != 200:
            return httpx2.Response(
                status, json={"error": {"code": "queue_full", "message": "full"}}, headers={"Retry-After": "0"}
            )
        return httpx2.Response(200, json={"translations": [], "model": "m", "a new field": 1})

    with Client("http://server", api_key="key", transport=httpx2.MockTransport(answer)) as client:
        assert client.translate([]) == []
    assert seen == ["Bearer key"] * 3
    with Client(
        "http://server",
        max_retries=0,
        transport=httpx2.MockTransport(lambda _: httpx2.Response(429, text="busy", headers={"Retry-After": "7"})),
    ) as client:
        with pytest.raises(Overloaded, match="429: busy") as rejected:
            client.translate("text")
        assert rejected.value.retry_after_seconds == 7.0


def test_a_stream_that_ends_early_raises() -> None:
    def answer(_: httpx2.Request) -> httpx2.Response:
        events = b'event: text\ndata: {"index":0,"text":"Gu"}\n\n'
        return httpx2.Response(200, content=events, headers={"Content-Type": "text/event-stream"})

    transport = httpx2.MockTransport(answer)
    with Client("http://server", transport=transport) as client, pytest.raises(ConnectionFailed, match="last event"):
        list(client.stream("text"))


def test_the_options_are_those_of_the_server(served: Served) -> None:
    schemas = httpx2.get(f"{served.url}/openapi.json").json()["components"]["schemas"]
    for body, options, others in (
        ("TranslateBody", Options, {"text", "source", "target", "stream"}),
        ("GenerateBody", GenerationOptions, {"text", "stream"}),
        ("EmbedBody", EmbeddingOptions, {"text"}),
        ("ScoreBody", ScoreOptions, {"text", "translation", "source", "target"}),
        ("DocumentForm", DocumentOptions, {"file", "source", "target"}),
    ):
        assert get_type_hints(options).keys() == schemas[body]["properties"].keys() - others
