"""A store of translation memories, and files for it."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from server.memory.store import MemoryStore

WriteTmx = Callable[[Sequence[tuple[str, str]]], Path]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    opened = MemoryStore(tmp_path / "memories")
    yield opened
    opened.close()


@pytest.fixture
def write_tmx(tmp_path: Path) -> WriteTmx:
    """Writes a file with these pairs of English and German."""

    def write(pairs: Sequence[tuple[str, str]]) -> Path:
        units = "".join(
            f'<tu><tuv xml:lang="en"><seg>{escape(source)}</seg></tuv>'
            f'<tuv xml:lang="de"><seg>{escape(target)}</seg></tuv></tu>\n'
            for source, target in pairs
        )
        path = tmp_path / "pairs.tmx"
        path.write_text(f'<tmx version="1.4">\n<header srclang="en"/>\n<body>\n{units}</body>\n</tmx>\n', "utf-8")
        return path

    return write
