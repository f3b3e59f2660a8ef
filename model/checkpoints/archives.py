"""Files from outside, which are untrusted: ZIP (`.zip`, `.argosmodel`), tar and folders of packed files are extracted.

Mozilla's repository of models has such folders: `model.ende.intgemm.alphas.bin.gz`, `vocab.ende.spm.gz`. Firefox
downloads the same files packed with Zstandard. Files that macOS adds to archives are left out.
"""

import errno
import gzip
import hashlib
import lzma
import shutil
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import IO, Final, cast

from model.checkpoints.checkpoint import CheckpointError

PACKED: Final = (".gz", ".zst")
MAX_FILES: Final = 10_000
MAX_ENTRIES: Final = 2 * MAX_FILES
"""Most entries of a tar file; folders and links are entries, too."""
MAX_RATIO: Final = 50
"""Largest factor between the extracted size and the size of the archive; weights hardly compress."""
MIN_LIMIT_BYTES: Final = 100_000_000
_WEIGHTS: Final = (".npz", ".bin", ".pt", ".pth")  # ZIP files as well
_BLOCK: Final = 1 << 20
_DAMAGE: Final = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError)
# bz2 and gzip raise OSError without a number; in a damaged ZIP file, positions are wrong and paths exclude each other.
_ERRORS_OF_DAMAGE: Final = (None, errno.EINVAL, errno.EEXIST, errno.ENOTDIR, errno.EISDIR)


def is_archive(path: Path) -> bool:
    """Return whether a path is an archive that `extract` reads: a file, or a folder whose model is packed."""
    if path.is_dir():
        packed = (each for ending in PACKED for each in path.glob(f"model.*{ending}"))
        return any(each.is_file() and not each.with_suffix("").exists() for each in packed)
    try:
        return path.suffix not in _WEIGHTS and (zipfile.is_zipfile(path) or tarfile.is_tarfile(path))
    except _DAMAGE:
        return True  # `extract` has the error


def extract(archive: Path, folder: Path) -> Path:
    """Extract regular files into `folder`, and return it, or the only folder at the top of the archive.

    Raises ValueError for paths that lead out of the folder, for too many files and for more bytes than the archive's
    size explains.
    """
    packed = archive.iterdir() if archive.is_dir() else [archive]
    limit = max(MIN_LIMIT_BYTES, MAX_RATIO * sum(each.stat().st_size for each in packed if each.is_file()))
    folder.mkdir(parents=True, exist_ok=True)
    num_bytes = 0
    try:
        members = ((name, blocks) for name, blocks in _members(archive) if not _is_of_macos(name))
        for num_files, (name, blocks) in enumerate(members, 1):
            if num_files > MAX_FILES:
                raise ValueError(f"{archive.name} must contain at most {MAX_FILES} files")
            path = folder / _safe(archive, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as sink:
                for block in blocks:
                    num_bytes += len(block)
                    if num_bytes > limit:
                        raise ValueError(f"{archive.name} must extract to at most {limit} bytes")
                    sink.write(block)
    except (*_DAMAGE, NotImplementedError, RuntimeError, LookupError, OSError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError) and error.errno not in _ERRORS_OF_DAMAGE:
            raise  # the disk is full
        raise ValueError(f"{archive.name} is damaged or of another format: {error}") from error
    except ValueError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else folder


def unpacked(path: Path) -> Iterator[bytes]:
    """Yield the content of a file in blocks, uncompressed if its name ends in .gz or .zst.

    Raises ValueError if it is damaged, or if a package is missing.
    """
    opened: Callable[..., IO[bytes]]
    damage: tuple[type[Exception], ...]
    if path.suffix == ".zst":
        try:
            zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
        except ImportError:
            raise ValueError(f"{path.name} needs the package backports.zstd; install the extra export") from None
        opened, damage = zstd.open, (zstd.ZstdError, EOFError)
    else:
        opened = cast(Callable[..., IO[bytes]], gzip.open) if path.suffix == ".gz" else Path.open
        damage = (zlib.error, gzip.BadGzipFile, EOFError)
    try:
        with opened(path, "rb") as stream:
            yield from _blocks(stream)
    except damage as error:
        raise ValueError(f"{path.name} is damaged: {error}") from error


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    return iter(partial(stream.read, _BLOCK), b"")


def _members(archive: Path) -> Iterator[tuple[str, Iterator[bytes]]]:
    if archive.is_dir():
        for path in sorted(archive.iterdir()):
            if path.is_file():
                yield path.stem if path.suffix in PACKED else path.name, unpacked(path)
        return
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            for member in packed.infolist():
                if not member.is_dir():
                    with packed.open(member) as stream:
                        yield member.filename, _blocks(stream)
        return
    with tarfile.open(archive) as packed_tar:
        for num_entries, entry in enumerate(packed_tar, 1):
            # A megabyte can be packed links by the million.
            if num_entries > MAX_ENTRIES:
                raise ValueError(f"{archive.name} must contain at most {MAX_ENTRIES} entries")
            # Links and devices are left out: a model is regular files.
            if entry.isfile() and (content := packed_tar.extractfile(entry)) is not None:
                yield entry.name, _blocks(content)


def _is_of_macos(name: str) -> bool:
    """Return whether a file contains attributes of another one or of a folder in macOS."""
    path = PurePosixPath(name)
    return "__MACOSX" in path.parts or path.name == ".DS_Store" or path.name.startswith("._")


def _safe(archive: Path, name: str) -> PurePosixPath:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name or ":" in path.parts[0]:
        raise ValueError(f"{archive.name} contains a path that leads out of its folder: {name!r}")
    return path


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def require_files(path: Path) -> None:
    """Raise `CheckpointError` for a pipe or a device, by itself or in a folder: opening a pipe can wait for ever."""
    paths = sorted((*path.glob("*"), *path.glob("*/*"))) if path.is_dir() else [path]
    for each in paths:
        kinds = {"a pipe": each.is_fifo(), "a device": each.is_char_device() or each.is_block_device()}
        if kind := next((kind for kind, is_one in kinds.items() if is_one), None):
            raise CheckpointError(f"{each} is {kind}, not a file; replace or remove it")
