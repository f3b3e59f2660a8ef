"""Documents of strangers: an attack of every class, and what other users feel of it."""

import asyncio
import contextlib
import io
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from server.documents.isolation.process import ProcessLimits
from server.documents.job_store import DocumentStore, StoreOptions
from server.documents.jobs import JobStatus
from server.documents.rewriting import Translate
from server.interface.errors import DocumentCpuLimit, DocumentMemoryLimit, EngineFailed, InvalidDocument
from tests.faults.documents import DocumentReader, book, open_document, slides, word, workbook, xliff
from tests.server.documents.documents import loud, same
from tests.server.documents.pdf import line, pdf

# The limits are for a slow machine: most take a tenth of it.
CPU_SECONDS = 10.0
MEGABYTES = 150
PATIENCE_SECONDS = 300.0

ATTRIBUTES = " ".join(f"a{number}" for number in range(40_000))
EMPTY = "<b></b>" * 8000
EMPTY_SPANS = "<text:span/>" * 5000
NUMBERED = "".join(f'msgid "a{number}"\nmsgstr ""\n\n' for number in range(20_000))
CUES = "".join(f"{number}\n00:00:01,000 --> 00:00:02,000\na\n\n" for number in range(20_000))

# Pages of scattered letters, whose lines the library compares with each other, and a tree of many elements.
SCATTERED = "".join(line("a", 17 * number % 600, 23 * number % 800) for number in range(1500))
SLOW_DOCUMENT = pdf(*[SCATTERED] * 100)
LARGE_DOCUMENT = word("<w:p/>" * 590_000 + "<w:p><w:r><w:t>a</w:t></w:r></w:p>")


@pytest.fixture(scope="module")
def reader() -> Iterator[DocumentReader]:
    """Processes that are used again as in a server: starting two for each attack took longer than most attacks."""
    with contextlib.closing(DocumentReader(CPU_SECONDS, MEGABYTES)) as reader:
        yield reader


@pytest.mark.parametrize(
    ("extension", "content", "expected"),
    [
        (".html", ("<p>a" + "<b>b" * 300 + "</b>" * 300).encode(), "document_too_complex"),
        (".html", f"<p {ATTRIBUTES}>text".encode(), "done"),
        (".html", ("<select>" + "<option>a" * 20_000).encode(), "done"),
        (".html", f"<p><i>{EMPTY}x</i>{EMPTY}".encode(), "done"),
        (".html", b"<p>a<b>b</b>" * 20_000, "document_too_complex"),
        (".epub", book(f"<p><i>{EMPTY}x</i>{EMPTY}</p>"), "done"),
        (".odt", open_document(f"<text:p><text:span>{EMPTY_SPANS}x</text:span>{EMPTY_SPANS}</text:p>"), "done"),
        (".odt", open_document("<text:p>" + "a<text:s/>" * 20_000 + "</text:p>"), "done"),
        (".docx", word("<w:p>" + "<w:r><w:t>a</w:t></w:r>" * 60_000 + "</w:p>"), "done"),
        (".docx", word("<w:p><w:r>" + "<w:t>a</w:t><w:footnoteReference/>" * 10_000 + "</w:r></w:p>"), "done"),
        (".pptx", slides("<a:p>" + "<a:r><a:t>a</a:t></a:r>" * 60_000 + "</a:p>"), "done"),
        (".md", b"- a\n" * 200_000, "document_too_complex"),
        (".md", b"*a* \\* &amp; " * 2000, "done"),
        (".csv", b"a,b\n" * 50_000, "document_too_complex"),
        (".txt", b"a\n" * 100_000, "document_too_complex"),
        (".txt", b"a" * 2_000_000, "document_too_complex"),
        (".srt", CUES.encode(), "done"),
        (".po", NUMBERED.encode(), "done"),
        (".ass", ("[Events]\n" + "Dialogue: 1,2,3,4,5,6,7,8,9,a\n" * 20_000).encode(), "done"),
        (".json", ("[" + '"a",' * 100_000 + '"a"]').encode(), "document_too_complex"),
        (".json", b"[" * 200_000, "invalid_document"),
        (".yaml", b"- a\n" * 50_000, "document_too_complex"),
        (".yaml", b"[" * 100_000, "invalid_document"),
        (".yaml", ("a: &a x y\n" + "".join(f"k{number}: *a\n" for number in range(20_000))).encode(), "done"),
        (".properties", b"a = b c\n" * 50_000, "document_too_complex"),
        (".strings", b'"a" = "b c";\n' * 50_000, "done"),
        (".xliff", xliff("<trans-unit><source>a</source></trans-unit>" * 20_000), "done"),
        (".xliff", xliff("<trans-unit><source>" + "a<x/>" * 20_000 + "</source></trans-unit>"), "done"),
        (".xliff", xliff("<trans-unit><source>" + "<g>" * 5000 + "a</source></trans-unit>"), "invalid_document"),
        (".xlsx", workbook("<si>" + "<r><t>a</t></r>" * 40_000 + "</si>"), "done"),
        (
            ".ods",
            open_document("<table:table-cell><text:p>a</text:p></table:table-cell>" * 10_000, "spreadsheet"),
            "done",
        ),
        (".odp", open_document("<draw:page><text:p>a</text:p></draw:page>" * 10_000, "presentation"), "done"),
        (".pdf", pdf(*["".join(line("a word", 72, 12 * row) for row in range(60))] * 20), "done"),
        (".pdf", pdf("q " * 200_000 + line("a", 1, 1)), "document_too_complex"),
        (".pdf", pdf(*[line("a", 72, 700)] * 2001), "document_too_complex"),
    ],
)
def test_an_attack_is_read_in_little_time_and_memory_or_rejected(
    reader: DocumentReader, extension: str, content: bytes, expected: str
) -> None:
    assert reader.outcome(content, extension) == expected


def run(folder: Path, scenario: Callable[[DocumentStore], Awaitable[None]], cpu_seconds: float = 600.0) -> None:
    async def main() -> None:
        store = DocumentStore(StoreOptions(process_limits=ProcessLimits(cpu_seconds), folder=folder))
        try:
            await scenario(store)
        finally:
            await store.close()

    asyncio.run(asyncio.wait_for(main(), PATIENCE_SECONDS))
    assert not list(folder.iterdir())


async def _submit(store: DocumentStore, content: bytes, name: str) -> str:
    return (await store.submit(name, io.BytesIO(content), Translate(loud))).id


async def _computing(store: DocumentStore, num_documents: int) -> list[str]:
    """Submit slow documents and wait until they have been read for a second."""
    ids = [await _submit(store, SLOW_DOCUMENT, "a.pdf") for _ in range(num_documents)]
    await asyncio.sleep(2.0)
    assert all(store.get(each).status is JobStatus.TRANSLATING for each in ids)
    return ids


def test_two_hostile_documents_hold_up_neither_a_letter_nor_their_end(tmp_path: Path) -> None:
    before = _children()

    async def scenario(store: DocumentStore) -> None:
        hostile = await _computing(store, 2)
        letter = await _submit(store, b"Good morning.\n", "letter.txt")
        assert (await store.wait(letter)).status is JobStatus.DONE
        await store.delete(hostile[0])
        assert store.get(hostile[1]).status is JobStatus.TRANSLATING, "nothing waited for it"

    run(tmp_path, scenario)
    assert _children() == before


def test_a_limit_that_is_met_is_named_with_its_number(tmp_path: Path) -> None:
    async def scenario(store: DocumentStore) -> None:
        slow = await store.wait(await _submit(store, SLOW_DOCUMENT, "a.pdf"))
        assert isinstance(slow.error, DocumentCpuLimit)
        assert "may take 1.0 s of processor time and took more" in str(slow.error)
        large = await store.wait(await _submit(store, LARGE_DOCUMENT, "a.docx"))
        assert isinstance(large.error, DocumentMemoryLimit | DocumentCpuLimit)

    run(tmp_path, scenario, cpu_seconds=1.0)


def _children() -> set[int]:
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
    return set(map(int, children.split()))


def _wait_for_end(process: int) -> None:
    with contextlib.suppress(ChildProcessError):  # the store has noticed its end already
        os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)


def test_a_process_that_dies_fails_its_document_only(tmp_path: Path) -> None:
    async def scenario(store: DocumentStore) -> None:
        before = _children()
        document = await _submit(store, SLOW_DOCUMENT, "a.pdf")
        await asyncio.sleep(2.0)
        killed = _children() - before
        for process in killed:
            os.kill(process, signal.SIGKILL)
        for process in killed:
            await asyncio.to_thread(_wait_for_end, process)
        failed = await store.wait(document)
        assert isinstance(failed.error, InvalidDocument)
        assert "SIGKILL" in str(failed.error)
        letter = await _submit(store, b"Good morning.\n", "letter.txt")
        assert (await store.wait(letter)).status is JobStatus.DONE

    run(tmp_path, scenario)


def test_an_error_inside_the_process_is_the_servers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(store: DocumentStore) -> None:
        job = await store.submit("a.txt", io.BytesIO(b"Good morning.\n"), Translate(same))
        (folder,) = (path.parent for path in tmp_path.rglob("source"))  # noqa: ASYNC240 - a test's own folder
        (folder / "result").mkdir()
        failed = await store.wait(job.id)
        assert isinstance(failed.error, EngineFailed)

    run(tmp_path, scenario)
    assert "document process failed" in caplog.text
