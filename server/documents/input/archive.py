"""Untrusted ZIP archives: files are checked before they are read, and copied unless a format rewrites them."""

import struct
import zipfile
import zlib
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import PureWindowsPath
from typing import BinaryIO

from server.documents.fragment import AllFragments, Fragment, Rewrite, RewritePart
from server.documents.input.limits import MEGABYTE, PARAGRAPHS, FileLimits
from server.interface.errors import DocumentTooComplex, DocumentTooLarge, InvalidDocument

_END_SIGNATURE = b"PK\x05\x06"
_OLE_SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # encrypted documents have the file format of Office before 2007
_ZIP64_LOCATOR_SIGNATURE = b"PK\x06\x07"
_END_RECORD = struct.Struct("<4s4H2LH")  # https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, 4.3.16
_MAX_COMMENT_BYTES = 65_535
_ENTRY_BYTES = 1024  # of the directory for one file: 46, its name, and extra fields
_RATIO_FREE_BYTES = MEGABYTE  # files up to this size may have any ratio
_COPY_BYTES = 1 << 16
_ENCRYPTED = 0x1


class Archive:
    """Files of a document by name. No file is unpacked to a path."""

    def __init__(self, archive: zipfile.ZipFile, limits: FileLimits, num_bytes: int) -> None:
        self._archive = archive
        self._limits = limits
        self._num_bytes = num_bytes
        self._num_fragments = 0
        self.names = [info.filename for info in archive.infolist()]

    def read(self, name: str) -> bytes:
        """Read a file to parse. Raises `InvalidDocument` if it is missing, `DocumentTooLarge`, `DocumentTooComplex`."""
        try:
            info = self._archive.getinfo(name)
        except KeyError:
            raise InvalidDocument(f"{name} is missing in the document") from None
        if info.file_size > self._limits.max_part_bytes:
            raise DocumentTooLarge(
                f"{name} may have {self._limits.max_part_bytes} bytes unpacked. It has {info.file_size} bytes unpacked"
            )
        content = self._archive.read(info)
        if (num_tags := content.count(b"<")) > self._limits.max_tags:
            raise DocumentTooComplex(f"{name} may have {self._limits.max_tags} tags. Given: {num_tags}")
        return content

    def rewrite(self, sink: BinaryIO | None, parts: Mapping[str, RewritePart]) -> Rewrite:
        """Write all files to `sink` in their order, the `parts` rewritten. Without a sink only reads."""
        num_bytes = sum(info.file_size for info in self._archive.infolist() if info.filename in parts)
        contents: dict[str, bytes] = {}
        if self._limits.holds(num_bytes):
            contents = yield from self._rewritten_at_once(parts)
        elif sink is not None:
            yield []  # before files are copied, for who only asks whether the document is held
        else:
            for name in self.names:
                if name in parts:
                    yield from self._bounded(parts[name](self.read(name), name, False))
        if sink is None:
            return
        with zipfile.ZipFile(sink, "w", allowZip64=False) as written:
            written.comment = self._archive.comment
            for info in self._archive.infolist():
                name = info.filename
                if name in contents:
                    written.writestr(_like(info), contents.pop(name))
                elif name in parts:
                    content = yield from parts[name](self.read(name), name, False)
                    written.writestr(_like(info), content)
                else:
                    with self._archive.open(info) as old, written.open(_like(info), "w") as new:
                        while chunk := old.read(_COPY_BYTES):
                            new.write(chunk)

    def _bounded(self, steps: Generator[list[Fragment], list[Fragment], bytes]) -> Rewrite:
        """Yield the fragments of a part; raises `DocumentTooComplex` for more in all parts than the file is worth."""
        fragments = next(steps, None)
        while fragments is not None:
            self._num_fragments += len(fragments)
            PARAGRAPHS.check(self._num_fragments, self._num_bytes, "paragraphs")
            translations = yield fragments
            try:
                fragments = steps.send(translations)
            except StopIteration:
                return

    def _rewritten_at_once(
        self, parts: Mapping[str, RewritePart]
    ) -> Generator[list[Fragment], list[Fragment], dict[str, bytes]]:
        """Yield the fragments of all `parts` together, and return their new contents."""
        contents: dict[str, bytes] = {}
        waiting: list[tuple[str, Generator[list[Fragment], list[Fragment], bytes], int]] = []
        fragments = AllFragments()
        for name in self.names:
            if name in parts:
                steps = parts[name](self.read(name), name, True)
                try:
                    of_part = next(steps)
                except StopIteration as end:
                    contents[name] = end.value
                else:
                    waiting.append((name, steps, len(of_part)))
                    fragments += of_part
        remaining = iter((yield fragments) if fragments else ())
        for name, steps, num_fragments in waiting:
            try:
                steps.send(list(islice(remaining, num_fragments)))
            except StopIteration as end:
                contents[name] = end.value
        return contents


@contextmanager
def opened(source: BinaryIO, limits: FileLimits) -> Iterator[Archive]:
    """Open the archive, checked before anything is unpacked. Damage found later raises the same errors.

    Raises `InvalidDocument` and `DocumentTooLarge`.
    """
    try:
        _check_directory(source, limits)
        with _zip_file(source) as archive:
            _check_entries(archive.infolist(), limits)
            yield Archive(archive, limits, source.seek(0, 2))
    except (zipfile.BadZipFile, zlib.error, EOFError, struct.error, NotImplementedError, UnicodeDecodeError) as error:
        raise InvalidDocument(f"the file is damaged, or of another format: {error}") from error


def _zip_file(source: BinaryIO) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(source)
    except (ValueError, OSError) as error:  # an invalid directory, or one in front of the file
        raise InvalidDocument(f"the file is damaged: its directory of files cannot be read: {error}") from error


def _check_directory(source: BinaryIO, limits: FileLimits) -> None:
    """Check the size of the directory before it is read: its entries become objects in memory."""
    num_bytes = source.seek(0, 2)
    source.seek(max(0, num_bytes - _MAX_COMMENT_BYTES - _END_RECORD.size))
    tail = source.read()
    source.seek(0)
    end = tail.rfind(_END_SIGNATURE)
    if source.read(len(_OLE_SIGNATURE)) == _OLE_SIGNATURE:
        raise InvalidDocument(
            "the file needs a password, or has the format of Office before 2007; save it without a password in the "
            "format that its name indicates"
        )
    if end < 0 or len(tail) - end < _END_RECORD.size:
        raise InvalidDocument("the file is cut off, or of another format: it is not a ZIP archive")
    if _ZIP64_LOCATOR_SIGNATURE in tail[max(0, end - 20) : end]:
        raise InvalidDocument("the file is a ZIP64 archive; documents of an accepted size are not")
    _, _, _, _, _, directory_bytes, _, _ = _END_RECORD.unpack_from(tail, end)
    if directory_bytes > limits.max_entries * _ENTRY_BYTES:
        raise DocumentTooLarge(
            f"the directory of the archive may have {limits.max_entries * _ENTRY_BYTES} bytes, for "
            f"{limits.max_entries} files. It has {directory_bytes} bytes"
        )


def _check_entries(entries: list[zipfile.ZipInfo], limits: FileLimits) -> None:
    if len(entries) > limits.max_entries:
        raise DocumentTooLarge(f"the archive may have {limits.max_entries} files. It has {len(entries)} files")
    # zipfile returns at most the declared number of bytes, so the declared sizes are upper bounds.
    total = sum(info.file_size for info in entries)
    if total > limits.max_uncompressed_bytes:
        raise DocumentTooLarge(
            f"the document may have {limits.max_uncompressed_bytes} bytes unpacked. It has {total} bytes unpacked"
        )
    seen: set[str] = set()
    for info in entries:
        _check_name(info.filename, seen)
        if info.header_offset < 0:
            raise InvalidDocument(f"the file is damaged: {_shown(info.filename)} begins before the file does")
        if info.flag_bits & _ENCRYPTED:
            raise InvalidDocument(f"{_shown(info.filename)} is encrypted; remove the password first")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InvalidDocument(f"{_shown(info.filename)} has a compression that documents do not use")
        if info.file_size > max(_RATIO_FREE_BYTES, info.compress_size * limits.max_ratio):
            raise DocumentTooLarge(
                f"a file may unpack to {limits.max_ratio} times its size. {_shown(info.filename)} unpacks from "
                f"{info.compress_size} bytes to {info.file_size} bytes"
            )


def _check_name(name: str, seen: set[str]) -> None:
    path = PureWindowsPath(name)  # its anchor is a slash or a drive: programs on Windows unpack the translation, too
    if path.anchor or ".." in path.parts or "\\" in name or not path.parts:
        raise InvalidDocument(f"{_shown(name)} is not a valid name for a file inside a document")
    if name in seen:
        raise InvalidDocument(f"{_shown(name)} is in the archive twice")
    seen.add(name)


def _shown(name: str) -> str:
    return repr(name[:80])


def _like(info: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """Return a new entry with the properties of the old one that programs read."""
    new = zipfile.ZipInfo(info.filename, info.date_time)
    new.compress_type = info.compress_type
    new.external_attr = info.external_attr
    new.create_system = info.create_system
    new.comment = info.comment
    return new
