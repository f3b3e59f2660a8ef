"""TLS of the server: its certificate, loaded again when the file changes."""

import asyncio
import logging
import os
import ssl
from pathlib import Path

_log = logging.getLogger("kvasir")

_CHECK_SECONDS = 10.0


class TlsCertificate:
    """A certificate chain and its private key, in PEM files that a renewal replaces."""

    def __init__(self, certificate: Path, key: Path | None) -> None:
        """Load the files; without `key`, the certificate's file contains the key. Raises ValueError if that fails."""
        self._certificate = certificate
        self._key = key
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._state = self._files_state()
        try:
            # Without the callback, OpenSSL asks for the password of an encrypted key on the terminal.
            self.context.load_cert_chain(certificate, key, password=_no_password)
        except (OSError, ValueError) as error:
            raise ValueError(f"{self._names()} cannot be used for TLS: {self._cause(error)}") from error

    async def watch(self, seconds: float = _CHECK_SECONDS) -> None:
        """Load the files again whenever they change, until cancelled. New connections use the new certificate."""
        while True:
            await asyncio.sleep(seconds)
            self.reload_if_changed()

    def reload_if_changed(self) -> None:
        """Load the files if they have changed. While they do not fit together, the old certificate stays in use."""
        state = self._files_state()
        if state == self._state:
            return
        self._state = state
        try:
            # A failed attempt on the context in use would leave it with a certificate of another key.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self._certificate, self._key, password=_no_password)
            self.context.load_cert_chain(self._certificate, self._key, password=_no_password)
        except (OSError, ValueError) as error:
            _log.error(
                "certificate not loaded; the old one stays in use",
                extra={"files": self._names(), "cause": self._cause(error)},
            )
        else:
            _log.info("certificate loaded again", extra={"files": self._names()})

    def _cause(self, error: Exception) -> str:
        """Return why the files cannot be used. OpenSSL names neither the file nor what it lacks."""
        key = self._certificate if self._key is None else self._key
        needed = (
            (self._certificate, "certificate", b"BEGIN CERTIFICATE-----", "--tls-certificate"),
            (key, "private key", b"PRIVATE KEY-----", "--tls-key"),
        )
        for path, kind, mark, flag in needed:
            try:
                is_there = mark in path.read_bytes()
            except OSError as unreadable:
                return f"{path}: {unreadable.strerror}; set a file that the server can read with {flag}"
            if not is_there:
                return f"{path} contains no {kind} in PEM format; set a file that does with {flag}"
        if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
            return "the private key belongs to another certificate; set the key of this one with --tls-key"
        return str(error)

    def _names(self) -> str:
        return str(self._certificate) if self._key is None else f"{self._certificate} with {self._key}"

    def _files_state(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(_state_of(path) for path in (self._certificate, self._key) if path is not None)


def _state_of(path: Path) -> tuple[int, int, int] | None:
    """Return what differs after a file was written or replaced; None if it is missing for a moment."""
    try:
        found: os.stat_result = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _no_password() -> str:
    raise ValueError("the private key is encrypted; store it without a password, readable by the server only")
