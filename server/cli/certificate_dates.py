"""Dates between which a TLS certificate is valid."""

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
