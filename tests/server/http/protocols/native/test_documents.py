"""Documents over HTTP."""

import time
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from server.http.app import create_app
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator
from tests.server.documents.office import word_document

LETTER = b"Good morning.\n\nWhere is the dog?\n"
SENTENCE = "Where is the railway station? "
PATIENCE_SECONDS = 60.0


@pytest.fixture
def client(echo: EchoGenerator) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(max_file_megabytes=1, max_documents=3), [echo])) as client:
        yield client


def _finished(client: TestClient, document_id: str) -> dict[str, object]:
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        answer: dict[str, object] = client.get(f"/v1/documents/{document_id}").json()
        if answer["status"] in ("done", "error"):
            return answer
        time.sleep(0.005)
    pytest.fail("the document is never finished")


def test_a_document_is_submitted_translated_and_downloaded(client: TestClient, echo: EchoGenerator) -> None:
    form = {"source": "en", "target": "de", "beam_size": "2", "length_penalty": "0.5"}
    taken = client.post("/v1/documents", files={"file": ("Brief an Zoë.txt", LETTER)}, data=form)
    assert taken.status_code == 202
    document_id = taken.json()["id"]
    assert taken.headers["location"] == f"/v1/documents/{document_id}"
    status = _finished(client, document_id)
    assert status == {
        "id": document_id,
        "name": "Brief an Zoë.de.txt",
        "status": "done",
        "progress": 1.0,
        "units_done": 2,
        "num_units": 2,
        "num_characters": 30,
        "num_texts": 2,
        "num_translated": 0,
    }
    params = echo.batches[0][0].params
    assert (params.beam_size, params.options.length_penalty) == (2, 0.5)
    content = client.get(f"/v1/documents/{document_id}/content")
    assert content.status_code == 200
    assert content.content == LETTER
    assert content.headers["content-type"].startswith("text/plain")
    encoded = "filename*=utf-8''Brief%20an%20Zo%C3%AB.de.txt"
    assert content.headers["content-disposition"] == f'attachment; filename="Brief an Zoe.de.txt"; {encoded}'
    assert content.headers["x-content-type-options"] == "nosniff"
    metrics = client.get("/metrics").text
    assert 'kvasir_documents_total{format="txt",outcome="done"} 1.0' in metrics
    assert "kvasir_documents_held 1.0" in metrics
    assert client.delete(f"/v1/documents/{document_id}").status_code == 204
    for gone in (
        client.get(f"/v1/documents/{document_id}"),
        client.get(f"/v1/documents/{document_id}/content"),
        client.delete(f"/v1/documents/{document_id}"),
    ):
        assert gone.status_code == 404
        assert gone.json()["error"]["code"] == "unknown_document"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", " \t" + SENTENCE * 100 + "\nGood morning.\n"),
        ("a.txt", "Good, " * 500 + "\n"),
        ("a.txt", "good" * 500 + " " * 1000 + "good\n"),
        ("a.csv", f"1,Good morning\n2,{SENTENCE * 100}\n"),
        ("a.srt", f"1\n00:00:01,000 --> 00:00:02,000\n<i>Good</i> {SENTENCE * 100}\n"),
    ],
)
def test_a_text_longer_than_a_request_is_translated_in_parts(echo: EchoGenerator, name: str, content: str) -> None:
    with TestClient(create_app(Settings(max_text_characters=300), [echo])) as client:
        taken = client.post("/v1/documents", files={"file": (name, content.encode())})
        status = _finished(client, taken.json()["id"])
        assert (status["status"], status["units_done"]) == ("done", status["num_units"]), status
        translated = client.get(f"/v1/documents/{taken.json()['id']}/content").text
        assert translated.replace("<i>", "").replace("</i>", "") == content.replace("<i>", "").replace("</i>", "")


def test_a_text_is_divided_at_the_ends_of_sentences(echo: EchoGenerator) -> None:
    with TestClient(create_app(Settings(max_text_characters=300), [echo])) as client:
        taken = client.post("/v1/documents", files={"file": ("a.txt", SENTENCE.encode() * 100)})
        assert _finished(client, taken.json()["id"])["status"] == "done"
    lengths = {len(request.source) for batch in echo.batches for request in batch}
    assert len(lengths) == 1


@pytest.mark.parametrize(
    ("name", "content", "form", "status", "code"),
    [
        ("letter.exe", LETTER, {}, 415, "unsupported_format"),
        ("letter.txt", b"", {}, 422, "invalid_document"),
        ("letter.txt", b"x" * 1_000_001, {}, 413, "document_too_large"),
        ("letter.txt", b"x" * 6_000_000, {}, 413, "body_too_large"),
        ("letter.txt", LETTER, {"target": "fr"}, 422, "unsupported_language_pair"),
    ],
)
def test_an_invalid_submission_is_rejected_at_once(
    client: TestClient, name: str, content: bytes, form: dict[str, str], status: int, code: str
) -> None:
    answer = client.post("/v1/documents", files={"file": (name, content)}, data=form)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["code"] == code


def test_the_delimiter_of_a_table_can_be_set(client: TestClient) -> None:
    table = b"a;b,c\ne;f,g\n"
    taken = client.post("/v1/documents", files={"file": ("a.csv", table)}, data={"delimiter": ";"})
    assert _finished(client, taken.json()["id"])["status"] == "done"
    taken = client.post("/v1/documents", files={"file": ("a.csv", table)})
    failed = _finished(client, taken.json()["id"])
    assert failed["error"] == {
        "code": "invalid_document",
        "message": "the delimiter may be ',' (2 columns in 2 rows) or ';' (2 columns in 2 rows); set `delimiter`",
    }
    for form, name in (({"delimiter": "#"}, "a.csv"), ({"delimiter": ";"}, "a.txt")):
        rejected = client.post("/v1/documents", files={"file": (name, table)}, data=form)
        assert rejected.status_code == 422
        assert "`delimiter`" in rejected.json()["error"]["message"]


def test_the_format_columns_and_encoding_of_a_document_can_be_set(client: TestClient) -> None:
    form = {"format": "csv", "columns": "Text", "encoding": "latin-1", "delimiter": ";"}
    taken = client.post(
        "/v1/documents", files={"file": ("table", "Code;Text\nGröße;abc\n".encode("latin-1"))}, data=form
    )
    done = _finished(client, taken.json()["id"])
    assert (done["status"], done["num_units"]) == ("done", 1)
    content = client.get(f"/v1/documents/{done['id']}/content").content
    assert content.startswith("Code;Text\nGröße;".encode("latin-1"))
    for wrong, code in (({"format": "exe"}, 415), ({"encoding": "hex"}, 422), ({"columns": "x", "format": "txt"}, 422)):
        assert client.post("/v1/documents", files={"file": ("a.csv", LETTER)}, data=wrong).status_code == code


def test_a_document_that_takes_too_much_work_has_an_error_code(client: TestClient) -> None:
    page = "<p>a" + "<b>b" * 300 + "</b>" * 300
    taken = client.post("/v1/documents", files={"file": ("a.html", page.encode())})
    failed = _finished(client, taken.json()["id"])
    assert isinstance(failed["error"], dict)
    assert failed["error"]["code"] == "document_too_complex"
    files = client.post(
        "/translate_file", files={"file": ("a.html", page.encode())}, data={"source": "en", "target": "de"}
    )
    assert files.status_code == 400
    assert "nested 256 deep" in files.json()["error"]


def test_a_part_without_a_file_name_is_no_file(client: TestClient) -> None:
    answer = client.post("/v1/documents", files={"file": (None, LETTER)}, data={"source": "en", "target": "de"})
    assert answer.status_code == 422
    message = "`file` must be a file; send it as a part with a `filename`"
    assert answer.json()["error"] == {"code": "invalid_request", "message": message}


def test_the_status_of_a_damaged_document_has_the_error(client: TestClient) -> None:
    taken = client.post("/v1/documents", files={"file": ("letter.docx", word_document()[:5000])})
    assert taken.status_code == 202
    status = _finished(client, taken.json()["id"])
    assert status["status"] == "error"
    assert status["error"] == {
        "code": "invalid_document",
        "message": "the file is cut off, or of another format: it is not a ZIP archive",
    }
    content = client.get(f"/v1/documents/{taken.json()['id']}/content")
    assert content.status_code == 409
    assert content.json()["error"]["code"] == "document_not_ready"


def test_more_documents_than_the_server_keeps_get_429(client: TestClient) -> None:
    for number in range(3):
        client.app.state.server.documents.capacity.begin_upload(str(number), 1)  # type: ignore[attr-defined]
    answer = client.post("/v1/documents", files={"file": ("letter.txt", LETTER)})
    assert answer.status_code == 429
    assert 1 <= int(answer.headers["retry-after"]) <= 10


CAPTIONS = b"1\n00:00:01,000 --> 00:00:02,000\nWhere is\n\n2\n00:00:02,100 --> 00:00:02,200\nthe railway station?\n"


@pytest.mark.parametrize(
    ("form", "num_units", "captions"),
    [
        ({}, 1, {"joined": 2, "cuts": 0, "too_fast": 1}),
        ({"reading_speed": "3.5"}, 1, {"joined": 2, "cuts": 0, "too_fast": 2}),
        ({"join_captions": "false"}, 2, {"joined": 0, "cuts": 0, "too_fast": 1}),
    ],
)
def test_captions_of_one_sentence_are_joined_and_counted(
    client: TestClient, form: dict[str, str], num_units: int, captions: dict[str, int]
) -> None:
    taken = client.post("/v1/documents", files={"file": ("a.srt", CAPTIONS)}, data=form)
    status = _finished(client, taken.json()["id"])
    assert status["captions"] == captions
    assert (status["num_units"], status["num_texts"]) == (num_units, 2)


def test_options_of_captions_are_for_subtitles(client: TestClient) -> None:
    refused = client.post("/v1/documents", files={"file": ("a.txt", LETTER)}, data={"join_captions": "false"})
    assert refused.status_code == 422
    assert "`join_captions` is for .srt, .vtt, .ass, .ssa, .sub files only" in refused.json()["error"]["message"]


@pytest.mark.parametrize(("name", "result"), [("a.b.txt", "a.b.de.txt"), ("a.txt", "a.de.txt"), ("a", "a")])
def test_the_name_of_the_translation_has_the_language(client: TestClient, name: str, result: str) -> None:
    form = {"source": "en", "target": "de", "format": "txt"}
    answer = client.post("/v1/documents", files={"file": (name, b"Tea.")}, data=form)
    assert answer.json()["name"] == result
