"""Every example of the README and of docs/ works as written, against a server of the model in the repository."""

import sys
from collections.abc import Iterator
from pathlib import Path

import docx
import pytest

from tests.docs.fenced_blocks import SAME_AS, blocks_of, pages
from tests.docs.running import Reader
from tests.end_to_end.servers import Served, started
from tests.export.tiny_checkpoint import write_checkpoint

# Files that a reader has; the examples name them.
TEXTS = {
    "english.txt": "Good morning.\nWhere is the station?\n",
    "letter.txt": "Good morning.\n",
}


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    """Return a server for all pages. It rejects no request: a busy machine may need longer than a queue allows."""
    yield from started("--threads", "1", "--max-queue-seconds", "3600")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small checkpoint."""
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint") / "tiny-en-de")


@pytest.fixture
def reader(server: Served, checkpoint: Path, tmp_path: Path) -> Reader:
    """Return a reader of one page."""
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    letter = docx.Document()
    letter.add_paragraph("Good morning. How are you today?")
    letter.save(str(tmp_path / "letter.docx"))
    (tmp_path / "path" / "to").mkdir(parents=True)
    (tmp_path / "path" / "to" / "checkpoint").symlink_to(checkpoint)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    return Reader(tmp_path, server.url.removeprefix("http://"))


@pytest.mark.parametrize("page", [page for page in pages() if any(block.is_run for block in blocks_of(page))])
def test_the_examples_of_a_page_work(page: str, reader: Reader) -> None:
    problems = reader.follow(blocks_of(page))
    assert not problems, "\n\n".join(problems)


def test_every_block_is_checked_or_marked_with_a_reason() -> None:
    blocks = [block for page in pages() for block in blocks_of(page)]
    assert any(block.is_run for block in blocks)
    assert not [block.where for block in blocks if not block.is_checked_or_marked]


def test_a_copy_in_a_page_equals_its_file() -> None:
    copies = [block for page in pages() for block in blocks_of(page) if block.mark == SAME_AS]
    root = Path(__file__).resolve().parents[2]
    assert not [copy.where for copy in copies if (root / copy.value).read_text(encoding="utf-8") != copy.text]
