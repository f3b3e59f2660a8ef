"""Documents through a running server with the model that comes along."""

import io

import docx
import httpx2
from docx.text.paragraph import Paragraph

from tests.end_to_end.servers import Served, until
from tests.server.documents.office import word_document


def _translated(client: httpx2.Client, name: str, content: bytes) -> bytes:
    taken = client.post("/v1/documents", files={"file": (name, content)}, data={"source": "en", "target": "de"})
    assert taken.status_code == 202, taken.text
    address = taken.headers["location"]
    until(lambda: client.get(address).json()["status"] in ("done", "error"))
    assert client.get(address).json()["progress"] == 1.0, client.get(address).text
    result = client.get(f"{address}/content")
    assert result.status_code == 200
    assert client.delete(address).status_code == 204
    return result.content


def _shape(paragraph: Paragraph) -> tuple[bool, str | None]:
    """Whether there is text, and its style."""
    return bool(paragraph.text.strip()), None if paragraph.style is None else str(paragraph.style.name)


def test_a_word_document_becomes_german_and_keeps_its_shape(served: Served) -> None:
    source = word_document()
    with served.client() as client:
        result = docx.Document(io.BytesIO(_translated(client, "letter.docx", source)))
    before = docx.Document(io.BytesIO(source))
    assert "Guten" in result.paragraphs[1].text
    assert [_shape(paragraph) for paragraph in result.paragraphs] == [
        _shape(paragraph) for paragraph in before.paragraphs
    ]
    assert len(result.inline_shapes) == 1
    assert result.tables[0].cell(0, 0).text != "Good evening"
