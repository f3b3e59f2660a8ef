"""The protocols by name."""

from loadtest.sending.protocols import deepl, libretranslate, native
from loadtest.sending.protocols import native_stream as stream
from loadtest.sending.protocols.protocol import ProtocolModule

_PROTOCOLS: dict[str, ProtocolModule] = {
    "native": native,
    "stream": stream,
    "libretranslate": libretranslate,
    "deepl": deepl,
}


def protocol(name: str) -> ProtocolModule:
    """Return the protocol with that name, as in `TextRequest.protocol`. Raises `KeyError` for an unknown name."""
    return _PROTOCOLS[name]
