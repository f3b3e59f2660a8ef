import asyncio
import io
import random

import pytest

from server.documents.job_store import DocumentContent
from server.http.responses.download import download


@pytest.mark.parametrize(
    ("name", "disposition"),
    [
        ("a b.txt", "attachment; filename=\"a b.txt\"; filename*=utf-8''a%20b.txt"),
        ('Übung "1".docx', "attachment; filename=\"Ubung _1_.docx\"; filename*=utf-8''%C3%9Cbung%20%221%22.docx"),
        ("50%\\/\r\n茶", "attachment; filename=\"50______\"; filename*=utf-8''50%25%5C%2F%0D%0A%E8%8C%B6"),
    ],
)
def test_a_document_has_its_name_in_both_forms(name: str, disposition: str) -> None:
    headers = download(DocumentContent(name, "text/plain", 1, io.BytesIO(b"x"))).headers
    assert headers["content-disposition"] == disposition
    assert headers["x-content-type-options"] == "nosniff"


def test_a_document_is_sent_whole_and_closed() -> None:
    content = random.Random(1).randbytes(200_000)
    stream = io.BytesIO(content)
    response = download(DocumentContent("a.txt", "text/plain", len(content), stream))

    async def received() -> bytes:
        return b"".join([bytes(part) async for part in response.body_iterator])  # type: ignore[arg-type]

    assert asyncio.run(received()) == content
    assert stream.closed
    assert (response.headers["content-length"], response.media_type) == ("200000", "text/plain")
