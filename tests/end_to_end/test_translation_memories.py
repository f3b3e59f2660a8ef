"""Translation memories with DeepL's own Python client, unmodified, and what a translation says about them."""

from collections.abc import Iterator
from pathlib import Path

import deepl
import httpx2
import pytest

from kvasir_client import Client
from tests.end_to_end.servers import Served, relabelled, started

_TMX = """<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en"><seg>Press the green button 5 times.</seg></tuv>
<tuv xml:lang="de"><seg>Die grüne Taste 5-mal betätigen.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>The red pump is in the old house.</seg></tuv>
<tuv xml:lang="de"><seg>Das rote Pumpwerk befindet sich im alten Haus.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>5</seg></tuv><tuv xml:lang="de"><seg>5</seg></tuv></tu>
</body></tmx>"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    file = tmp_path_factory.mktemp("memories") / "memories"
    yield from started("--memory-file", str(file), "--threads", "1")


@pytest.fixture(scope="module")
def client(server: Served) -> deepl.DeepLClient:
    return deepl.DeepLClient("any key", server_url=server.url)


@pytest.fixture(scope="module")
def memory(client: deepl.DeepLClient, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("files") / "legal.tmx"
    path.write_text(_TMX, "utf-8")
    job = client.import_translation_memory_from_filepath(path, display_name="Legal", timeout_s=60)
    assert job.result is not None
    assert (job.status, job.display_name, job.result.skipped_segment_count) == ("completed", "Legal", 1)
    assert job.source_content_length == path.stat().st_size
    assert job.result.translation_memory_id is not None
    return job.result.translation_memory_id


def _translated(server: Served, text: str, **fields: object) -> dict[str, object]:
    body = {"text": text, "source": "en", "target": "de", **fields}
    answer = httpx2.post(f"{server.url}/v1/translate", json=body).json()
    translation: dict[str, object] = answer["translations"][0]
    return translation


def test_memories_and_their_segments_are_listed_in_pages(client: deepl.DeepLClient, memory: str) -> None:
    [info] = client.list_translation_memories(page=0, page_size=5)
    assert (info.translation_memory_id, info.name, info.segment_count) == (memory, "Legal", 2)
    assert (info.source_language, info.target_languages) == ("en", ["de"])
    assert client.get_translation_memory(memory).creation_time is not None
    first = client.list_translation_memory_segments(memory, page_size=1)
    second = client.list_translation_memory_segments(memory, page_size=1, page_cursor=first.next_page_cursor)
    assert [each.source_text for each in (*first, *second)] == [
        "Press the green button 5 times.",
        "The red pump is in the old house.",
    ]
    assert second.next_page_cursor is None
    assert len(client.list_translation_memory_segments(memory, filter_text="PUMP")) == 1
    assert len(client.list_translation_memory_segments(memory, filter_text="PUMP", filter_case_sensitive=True)) == 0


def test_equal_sentences_are_answered_and_similar_ones_begin_alike(client: deepl.DeepLClient, memory: str) -> None:
    texts = ["Press the green button 7 times.", "The red pump is in the new house."]
    results = client.translate_text(texts, source_lang="EN", target_lang="DE", translation_memory=memory)
    assert isinstance(results, list)
    assert results[0].text == "Die grüne Taste 7-mal betätigen."
    assert results[1].text.startswith("Das rote Pumpwerk befindet sich im ")
    assert "alten" not in results[1].text
    [exact, other] = client.translate_text(
        texts, source_lang="EN", target_lang="DE", translation_memory=memory, translation_memory_threshold=100
    )  # type: ignore[misc]  # a list for a list
    assert exact.text == results[0].text
    assert "Pumpwerk" not in other.text


@pytest.mark.parametrize("format_", ["text", "html"])
def test_each_sentence_says_what_the_memory_had(server: Served, memory: str, format_: str) -> None:
    text = "Press the green button 7 times. Good morning. The red pump is in the new house."
    translation = _translated(server, text, memory_id=memory, format=format_)
    assert str(translation["text"]).startswith("Die grüne Taste 7-mal betätigen. Guten Morgen. Das rote Pumpwerk")
    details = translation["details"]
    assert isinstance(details, dict)
    uses = [(each["memory"], each.get("score"), each.get("segment_id")) for each in details["memory"]]
    assert uses == [("exact", 100, "1"), ("none", None, None), ("fuzzy", 87, "2")]
    assert " ".join(each["translation"] for each in details["memory"]) == translation["text"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Press the <b>green</b> button 7 times.", "Die <b>grüne</b> Taste 7-mal betätigen."),
        ("<p>Press the <b>green button</b> 7 times.</p>", "<p>Die <b>grüne Taste</b> 7-mal betätigen.</p>"),
        ("The <i>red</i> pump is in the old house.", "Das <i>rote</i> Pumpwerk befindet sich im alten Haus."),
    ],
)
def test_tags_stay_with_their_words_in_what_the_memory_has(
    server: Served, memory: str, text: str, expected: str
) -> None:
    translation = _translated(server, text, memory_id=memory, format="html")
    assert translation["text"] == expected
    assert translation["details"]["memory"][0]["memory"] == "exact"  # type: ignore[index]  # an object


def test_documents_count_sentences_by_their_memory(client: deepl.DeepLClient, server: Served, memory: str) -> None:
    content = "Press the green button 9 times.\n\nGood morning.\n"
    form = {"source": "en", "target": "de", "memory_id": memory}
    answer = httpx2.post(f"{server.url}/v1/documents", data=form, files={"file": ("a.txt", content)})
    address = f"{server.url}{answer.headers['location']}"
    while (state := httpx2.get(address).json())["status"] in ("queued", "translating"):
        pass
    assert state["details"]["memory"] == {"exact": 1, "none": 1}
    assert httpx2.get(f"{address}/content").text == "Die grüne Taste 9-mal betätigen.\n\nGuten Morgen.\n"


def test_a_memory_used_by_default_is_used_in_all_protocols(server: Served, memory: str) -> None:
    address = f"{server.url}/v3/translation_memories/{memory}"
    assert httpx2.patch(address, json={"use_by_default": True}).json()["use_by_default"]
    body = {"q": "Press the green button 3 times.", "source": "en", "target": "de"}
    answer = httpx2.post(f"{server.url}/translate", json=body).json()
    assert answer["translatedText"] == "Die grüne Taste 3-mal betätigen."
    httpx2.patch(address, json={"use_by_default": False})
    assert httpx2.post(f"{server.url}/translate", json=body).json() != answer


def test_a_correction_is_the_answer_from_then_on(server: Served, memory: str) -> None:
    address = f"{server.url}/v3/translation_memories/{memory}/segments"
    segment = {"source_text": "Good evening.", "targets": [{"target_language": "de", "target_text": "N'Abend."}]}
    stored = httpx2.put(address, json={"segments": [segment]}).json()
    assert stored["segment_count"] == 3
    assert _translated(server, "Good evening.", memory_id=memory)["text"] == "N'Abend."
    segment_id = stored["segments"][0]["source_segment_id"]
    assert httpx2.delete(f"{address}/{segment_id}").status_code == 204
    assert _translated(server, "Good evening.", memory_id=memory)["text"] != "N'Abend."


def test_the_python_client_keeps_a_translation(server: Served, memory: str) -> None:
    with Client(server.url) as client:
        client.keep_translation(memory, "Good night.", "Nachti!", target="de")
        assert client.translate("Good night.", source="en", target="de", memory_id=memory).text == "Nachti!"


def test_an_export_is_a_file_that_can_be_imported(client: deepl.DeepLClient, memory: str, tmp_path: Path) -> None:
    client.export_translation_memory_to_filepath(memory, tmp_path / "out.tmx", timeout_s=60)
    job = client.import_translation_memory_from_filepath(tmp_path / "out.tmx", timeout_s=60)
    assert job.result is not None
    copied = job.result.translation_memory_id
    assert copied is not None
    assert client.get_translation_memory(copied).segment_count == client.get_translation_memory(memory).segment_count
    client.delete_translation_memory(copied)
    with pytest.raises(deepl.DeepLException, match="Translation memory not found"):
        client.get_translation_memory(copied)


def test_a_malformed_file_is_refused_with_its_line(client: deepl.DeepLClient, memory: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.tmx"
    path.write_text(_TMX.replace("</tuv></tu>", "</tu>", 1), "utf-8")
    with pytest.raises(deepl.DeepLException, match="line 4"):
        client.import_translation_memory_from_filepath(path, timeout_s=60)
    assert len(client.list_translation_memories()) == 1


def test_unknown_memories_and_uploads_without_their_key_are_refused(server: Served, memory: str) -> None:
    client = deepl.DeepLClient("any key", server_url=server.url)
    with pytest.raises(deepl.DeepLException, match="Invalid or missing translation memory id"):
        client.translate_text("Hello.", source_lang="EN", target_lang="DE", translation_memory="unknown")
    job = client.create_translation_memory_import("x.tmx", 10)
    address = job.upload_url.replace("key=", "key=x")
    assert httpx2.put(address, content=b"<tmx/>").status_code == 404
    assert httpx2.put(job.upload_url, content=b"<tmx></tmx>").status_code == 400  # more than was announced
    assert httpx2.put(job.upload_url, content=b"<tmx/>").status_code == 204


@pytest.fixture(scope="module")
def through_english(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server from German to English, and from there to German that it says is French."""
    folder = tmp_path_factory.mktemp("bundles")
    models = ("--model", "models/de-en", "--model", str(relabelled(folder, "en", "fr")))
    yield from started(*models, "--memory-file", str(folder / "memories"), "--threads", "1")


@pytest.mark.parametrize("format_", ["text", "html"])
def test_a_memory_is_used_between_languages_without_a_model_of_their_own(through_english: Served, format_: str) -> None:
    with through_english.client() as client:
        languages = {"name": "Through English", "source_language": "de", "target_languages": ["fr"]}
        memory_id = client.post("/v3/translation_memories", json=languages).json()["translation_memory_id"]
        targets = [{"target_language": "fr", "target_text": "Appuyez 5 fois sur le bouton."}]
        segment = {"source_text": "Drücken Sie den Knopf 5 Mal.", "targets": targets}
        client.put(f"/v3/translation_memories/{memory_id}/segments", json={"segments": [segment]})
        text = "Guten Morgen. Drücken Sie den Knopf 7 Mal. Drücken Sie den Knopf sofort 7 Mal. Vielen Dank."
        body = {"text": text, "source": "de", "target": "fr", "memory_id": memory_id, "format": format_}
        answer = client.post("/v1/translate", json=body).json()["translations"][0]
        without = client.post("/v1/translate", json={**body, "memory_id": None}).json()["translations"][0]["text"]
    reports = answer["details"]["memory"]
    assert [each["memory"] for each in reports] == ["none", "exact", "fuzzy", "none"]
    assert [each["text"] for each in reports] == text.replace(". ", ".|").split("|")
    assert reports[1]["translation"] == "Appuyez 7 fois sur le bouton."
    assert "Appuyez 7 fois sur le bouton." in answer["text"]
    assert answer["text"].split()[-2:] == without.split()[-2:]
    assert "Appuyez" not in without
