"""Extraction of downloaded archives, which are untrusted: ZIP (`.zip`, `.argosmodel`), tar, and folders of gzip files.

Mozilla's repository of models has such folders: `model.ende.intgemm.alphas.bin.gz`, `vocab.ende.spm.gz`.
"""

import gzip
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Final, cast

MAX_FILES: Final = 10_000
MAX_RATIO: Final = 50
"""Largest factor between the extracted size and the size of the archive; weights hardly compress."""
_MIN_LIMIT_BYTES: Final = 100_000_000
_BLOCK: Final = 1 << 20


def is_archive(path: Path) -> bool:
    """Return whether a path is an archive that `extract` reads: a file, or a folder whose model is packed."""
    if path.is_dir():
        return any(each.is_file() and not each.with_suffix("").exists() for each in path.glob("model.*.gz"))
    return zipfile.is_zipfile(path) or tarfile.is_tarfile(path)


def extract(archive: Path, folder: Path) -> Path:
    """Extract regular files into `folder`, and return it, or the only folder at the top of the archive.

    Raises ValueError for paths that lead out of the folder, for too many files and for more bytes than the archive's
    size explains.
    """
    packed = archive.iterdir() if archive.is_dir() else [archive]
    limit = max(_MIN_LIMIT_BYTES, MAX_RATIO * sum(each.stat().st_size for each in packed if each.is_file()))
    folder.mkdir(parents=True, exist_ok=True)
    num_bytes = 0
    try:
        for num_files, (name, stream) in enumerate(_members(archive), 1):
            if num_files > MAX_FILES:
                raise ValueError(f"{archive.name} must contain at most {MAX_FILES} files")
            path = folder / _safe(archive, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as sink:
                while block := stream.read(_BLOCK):
                    num_bytes += len(block)
                    if num_bytes > limit:
                        raise ValueError(f"{archive.name} must extract to at most {limit} bytes")
                    sink.write(block)
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        zlib.error,
        gzip.BadGzipFile,
        EOFError,
        NotImplementedError,
        RuntimeError,
        FileExistsError,
        NotADirectoryError,
        IsADirectoryError,
    ) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise ValueError(f"{archive.name} is damaged or of another format: {error}") from error
    except ValueError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else folder


def _members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    if archive.is_dir():
        for path in sorted(archive.iterdir()):
            if path.is_file():
                is_packed = path.suffix == ".gz"
                with cast(IO[bytes], gzip.open(path)) if is_packed else path.open("rb") as stream:
                    yield path.stem if is_packed else path.name, stream
        return
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            for member in packed.infolist():
                if not member.is_dir():
                    with packed.open(member) as stream:
                        yield member.filename, stream
        return
    with tarfile.open(archive) as packed_tar:
        for entry in packed_tar:
            # Links and devices are left out: a model is regular files.
            if entry.isfile() and (content := packed_tar.extractfile(entry)) is not None:
                yield entry.name, content


def _safe(archive: Path, name: str) -> PurePosixPath:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name or ":" in path.parts[0]:
        raise ValueError(f"{archive.name} contains a path that leads out of its folder: {name!r}")
    return path
