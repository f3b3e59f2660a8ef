"""Protocols by name."""

from loadtest.protocols import deepl, libretranslate, native, stream
from loadtest.protocols.wire import WireProtocol

_PROTOCOLS: dict[str, WireProtocol] = {
    "native": native,
    "stream": stream,
    "libretranslate": libretranslate,
    "deepl": deepl,
}


def protocol(name: str) -> WireProtocol:
    """The protocol of that name, as in `TextRequest.protocol`. Raises `KeyError` for another."""
    return _PROTOCOLS[name]
