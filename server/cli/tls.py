"""TLS of the server: its certificate, loaded again when the file changes, and the dates between which it is valid."""

import asyncio
import logging
import math
import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

# ACME clients renew with a third of the lifetime left, so a certificate with less than a fifth was not renewed.
_LAST_SHARE = 0.2
_MAX_NOTICE = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class CertificateDates:
    """Validity of a certificate, in UTC, both ends included."""

    begin: datetime
    end: datetime

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the dates of the first certificate in a PEM file, which is the server's own.

        Raises ValueError if they cannot be read, although OpenSSL may accept the certificate.
        """
        from cryptography.x509 import InvalidVersion, load_pem_x509_certificate  # 14 MB, for servers with TLS only

        try:
            certificate = load_pem_x509_certificate(path.read_bytes())
        except InvalidVersion as error:
            raise ValueError(str(error)) from error
        return cls(certificate.not_valid_before_utc, certificate.not_valid_after_utc)

    def problem(self, now: datetime) -> str | None:
        """Return why clients reject the certificate, or will do so soon; None if it is valid for long enough."""
        if now < self.begin:
            return "certificate not valid yet; check the clock"
        if now > self.end:
            return "certificate expired; renew it"
        if self.end - now < min(_MAX_NOTICE, _LAST_SHARE * (self.end - self.begin)):
            return "certificate expires soon; renew it"
        return None

    def fields(self) -> dict[str, str]:
        """Return both dates for a log line, such as "2026-03-01T12:00:00Z"."""
        return {"valid_from": _text_of(self.begin), "valid_until": _text_of(self.end)}


def _text_of(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


_log = logging.getLogger("kvasir")

_CHECK_SECONDS = 10.0


class TlsCertificate:
    """A certificate chain and its private key, in PEM files that a renewal replaces.

    A warning is logged if the certificate is not valid, or not for long: when it is loaded, and when that begins.
    """

    def __init__(
        self, certificate: Path, key: Path | None, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """Load the files; without `key`, the certificate's file contains the key. Raises ValueError if that fails."""
        self._certificate = certificate
        self._key = key
        self._now = now
        self._dates: CertificateDates | None = None
        self._problem: str | None = None
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._state = self._files_state()
        try:
            # Without the callback, OpenSSL asks for the password of an encrypted key on the terminal.
            self.context.load_cert_chain(certificate, key, password=_no_password)
        except (OSError, ValueError) as error:
            raise ValueError(f"{self._names()} cannot be used for TLS: {self._cause(error)}") from error
        self._read_dates()

    def expiry_seconds(self) -> float:
        """Return the end of the certificate in use, in seconds since 1970; NaN if it could not be read."""
        return math.nan if self._dates is None else self._dates.end.timestamp()

    async def watch(self, seconds: float = _CHECK_SECONDS) -> None:
        """Load the files again whenever they change, until cancelled. New connections use the new certificate."""
        while True:
            await asyncio.sleep(seconds)
            self.reload_if_changed()
            self.check_dates()

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
            self._problem = None
            self._read_dates()

    def check_dates(self) -> None:
        """Log a warning if the certificate is not valid, or not for long, and no warning of this kind was logged."""
        problem = None if self._dates is None else self._dates.problem(self._now())
        if self._dates is not None and problem is not None and problem != self._problem:
            _log.warning(problem, extra={"file": str(self._certificate), **self._dates.fields()})
        self._problem = problem

    def _read_dates(self) -> None:
        """Read the dates of the certificate and check them. TLS works without them."""
        try:
            self._dates = CertificateDates.read(self._certificate)
        except (OSError, ValueError) as error:
            self._dates = None
            extra = {"file": str(self._certificate), "cause": str(error)}
            _log.warning("dates of the certificate not readable; its expiry is not checked", extra=extra)
        self.check_dates()

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
