"""Download of one file over HTTP: resumed after interruptions, by this process or a later one, and checked."""

import contextlib
import fcntl
import http.client
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BufferedRandom
from pathlib import Path
from typing import Final

from model.checkpoints.archives import sha256_of
from model.checkpoints.checkpoint import CheckpointError

Progress = Callable[[str, int, int | None], None]
"""Receives the name of a file, the bytes present, and its size if known."""

_BLOCK: Final = 1 << 20
_TIMEOUT_SECONDS: Final = 60
_MAX_VAIN_ATTEMPTS: Final = 5  # attempts in a row without a byte
_MAX_CONNECTIONS: Final = 2  # attempts to reach a server that has sent nothing
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_CAUSES: Final = {401: "an account is required", 403: "no permission", 404: "does not exist", 410: "does not exist"}


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """Address of a file, with the size and the SHA-256 that it must have, if they are known."""

    url: str
    size: int | None = None
    sha256: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class _Passing(Exception):
    """A failure that a later attempt may not have."""


class _Unreachable(_Passing):
    """There is no connection to the server."""


def no_progress(name: str, received: int, size: int | None) -> None:
    """Ignore the progress."""


def download(
    file: RemoteFile, path: Path, progress: Progress = no_progress, wait: Callable[[float], None] = time.sleep
) -> Path:
    """Download a file to `path`. Safe for several processes at once: one downloads, the others wait for it.

    An interrupted download leaves `path`.partial and continues there. Raises `CheckpointError` with the cause.
    """
    if not file.url.startswith(("http://", "https://")):
        raise CheckpointError(f"`url` must begin with https:// or http://. Given: {file.url}")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    with _locked(partial) as stream:
        # Another process downloaded it while this one waited, or an earlier command did, perhaps without a digest.
        if path.is_file() and not _problem(file, path):
            return path
        num_vain = 0
        begin = stream.seek(0, os.SEEK_END)
        while True:
            before = stream.seek(0, os.SEEK_END)
            try:
                _receive(file, stream, _tag_file(partial), lambda done, size: progress(path.name, done, size))
                break
            except _Passing as error:
                end = stream.seek(0, os.SEEK_END)
                num_vain = 0 if end > before else num_vain + 1
                is_unreachable = isinstance(error, _Unreachable) and end == begin
                if num_vain == (_MAX_CONNECTIONS if is_unreachable else _MAX_VAIN_ATTEMPTS):
                    problem = "cannot be reached" if is_unreachable else "was interrupted"
                    raise CheckpointError(f"{file.url} {problem}: {error}; run the command again") from error
                wait(min(2.0**num_vain, 30.0))
        if problem := _problem(file, partial):
            partial.unlink()
            _tag_file(partial).unlink(missing_ok=True)
            raise CheckpointError(f"{file.url}: {problem}; the download is deleted")
        partial.replace(path)
        _tag_file(partial).unlink(missing_ok=True)
    return path


@contextlib.contextmanager
def _locked(partial: Path) -> Iterator[BufferedRandom]:
    while True:
        with partial.open("a+b") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            # The process that held the lock may have moved or deleted this file.
            if _inode(partial) == os.fstat(stream.fileno()).st_ino:
                try:
                    yield stream
                finally:
                    if stream.tell() == 0:
                        partial.unlink(missing_ok=True)
                return


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def _tag_file(partial: Path) -> Path:
    return partial.with_name(partial.name + ".etag")


def _receive(
    file: RemoteFile, stream: BufferedRandom, tag_file: Path, progress: Callable[[int, int | None], None]
) -> None:
    start = stream.seek(0, os.SEEK_END)
    if file.size is not None and start >= file.size:
        return
    headers = {"User-Agent": "kvasir", **file.headers}
    if start:
        tag = tag_file.read_text("utf-8") if tag_file.is_file() else ""
        if tag or file.sha256:
            headers |= {"Range": f"bytes={start}-"} | ({"If-Range": tag} if tag else {})
        else:
            start = _restart(stream)  # nothing could show that the rest belongs to the same file
    request = urllib.request.Request(file.url, headers=headers)  # noqa: S310 - the scheme is checked
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310
            if response.status != 206 or _first_byte(response.headers.get("Content-Range")) != start:
                start = _restart(stream)
            tag = response.headers.get("ETag") or ""
            if tag and not tag.startswith("W/"):
                tag_file.write_text(tag, "utf-8")
            length = response.headers.get("Content-Length")
            size = start + int(length) if length and length.isdigit() else file.size
            while block := response.read(_BLOCK):
                stream.write(block)
                start += len(block)
                progress(start, size)
            stream.flush()
            if size is not None and start < size:
                raise _Passing(f"{start} of {size} bytes received")
    except urllib.error.HTTPError as error:
        if error.code == 416:
            _restart(stream)
            raise _Passing("the server has fewer bytes than expected") from error
        if error.code in _PASSING:
            raise _Passing(f"HTTP {error.code}") from error
        raise CheckpointError(f"{file.url}: {_CAUSES.get(error.code, 'rejected')} (HTTP {error.code})") from error
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        if isinstance(error, urllib.error.URLError):
            raise _Unreachable(str(error.reason)) from error
        raise _Passing(str(error) or type(error).__name__) from error


def _first_byte(content_range: str | None) -> int | None:
    found = re.match(r"bytes (\d+)-", content_range or "")
    return int(found[1]) if found else None


def _restart(stream: BufferedRandom) -> int:
    stream.seek(0)
    stream.truncate()
    return 0


def _problem(file: RemoteFile, path: Path) -> str:
    """Return the difference of a downloaded file from what is known of it; empty without one."""
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        return f"it must have {file.size} bytes. Given: {size}"
    if file.sha256 is not None:
        digest = sha256_of(path)
        if digest != file.sha256.lower():
            return f"its SHA-256 must be {file.sha256}. Given: {digest}"
    return ""
