"""Addresses of servers."""

from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Address:
    """Parts of a server's URL. `path` is the prefix of all paths, without a slash at its end."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def host_header(self) -> str:
        """Value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.scheme == "https" else 80) else f"{host}:{self.port}"


def address_of(url: str) -> Address:
    """Return the parts of an http or https URL. Raises `ValueError` with an example for any other."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"the URL must be like http://127.0.0.1:8000. Given: {url}")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return Address(parts.scheme, parts.hostname, port, parts.path.rstrip("/"))
