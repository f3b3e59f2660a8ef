"""How much of a document is read. Every limit is kept while reading, whatever the document says of itself."""

from dataclasses import dataclass

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Bounds of one document.

    `max_part_bytes` bounds what is parsed at once, and with it the memory: a text file, or one XML file of an archive.
    """

    max_file_bytes: int = 20 * MEGABYTE
    max_uncompressed_bytes: int = 200 * MEGABYTE  # of all files of an archive together
    max_part_bytes: int = 32 * MEGABYTE
    max_entries: int = 10_000  # files of an archive
    max_ratio: int = 200  # bytes of a file of an archive for each compressed byte
