"""Limits on one document. Every limit is enforced while reading; sizes that a document declares are not trusted."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from server.interface.errors import DocumentTooComplex

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Limits on one document.

    `max_part_bytes` bounds the bytes parsed at once, and with them the memory: a text file, or one XML file of an
    archive.
    """

    max_file_bytes: int = 20 * MEGABYTE
    max_uncompressed_bytes: int = 200 * MEGABYTE  # of all files of an archive together
    max_part_bytes: int = 32 * MEGABYTE
    # Of a text file, or of the XML files of an archive together: those of at most so many bytes are read once and held
    # until they are written, which takes up to 100 times their size. Larger ones are read twice, in windows.
    max_held_bytes: int = 2 * MEGABYTE
    max_entries: int = 10_000  # files of an archive
    max_ratio: int = 200  # uncompressed bytes per compressed byte of a file of an archive
    max_tags: int = 1_000_000  # of a page, or of one XML file of an archive: each takes some 200 bytes of memory
    max_paragraph_characters: int = 1_000_000  # the serving process holds a paragraph while it is translated

    def holds(self, size: int) -> bool:
        """Return whether a document of this size is read once and held until it is written.

        `size` is in bytes, or in characters of a text that is decoded already, which has no more of them than bytes.
        """
        return size <= self.max_held_bytes


T = TypeVar("T")


class Density(NamedTuple):
    """The number of parts that any document may have, and the characters that allow one more."""

    free: int
    characters_per_part: int

    def most(self, num_characters: int) -> int:
        """Return the number of parts that a document of this size may have."""
        return self.free + num_characters // self.characters_per_part

    def check(self, num_parts: int, num_characters: int, name: str) -> None:
        """Raise `DocumentTooComplex` for more parts. `name` is what they are, in the plural."""
        if num_parts > (most := self.most(num_characters)):
            raise DocumentTooComplex(
                f"{num_characters} characters or bytes of a document may have {most} {name}. They have more"
            )

    def bounded(self, parts: Iterable[T], num_characters: int, name: str) -> Iterator[T]:
        """Yield the parts; raises as `check` does at the first one too many."""
        most = self.most(num_characters)
        for number, part in enumerate(parts):
            if number == most:
                self.check(number + 1, num_characters, name)
            yield part


# Texts of an archive, by its compressed bytes, and different texts of any document: each takes the text pipeline 0.2 ms
# before it is translated, and each paragraph of an Office file 20 us.
PARAGRAPHS = Density(20_000, 20)
