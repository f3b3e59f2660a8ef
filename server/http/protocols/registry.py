"""The list of protocols. `--protocols` selects from it."""

from collections.abc import Sequence

from server.http.protocols.apertium.protocol import APERTIUM_PROTOCOL
from server.http.protocols.deepl.protocol import DEEPL_PROTOCOL
from server.http.protocols.deeplx.protocol import DEEPLX_PROTOCOL
from server.http.protocols.extensions.protocol import EXTENSIONS_PROTOCOL
from server.http.protocols.games.protocol import GAMES_PROTOCOL
from server.http.protocols.google.protocol import GOOGLE_PROTOCOL
from server.http.protocols.libretranslate.protocol import LIBRETRANSLATE_PROTOCOL
from server.http.protocols.microsoft.protocol import MICROSOFT_PROTOCOL
from server.http.protocols.mtranserver.protocol import MTRANSERVER_PROTOCOL
from server.http.protocols.native.protocol import NATIVE_PROTOCOL
from server.http.protocols.openai.protocol import OPENAI_PROTOCOL
from server.http.protocols.protocol import Protocol
from server.http.responses.error_formats import ErrorFormats

PROTOCOLS = {
    each.name: each
    for each in (
        NATIVE_PROTOCOL,
        LIBRETRANSLATE_PROTOCOL,
        DEEPL_PROTOCOL,
        DEEPLX_PROTOCOL,
        EXTENSIONS_PROTOCOL,
        MTRANSERVER_PROTOCOL,
        OPENAI_PROTOCOL,
        GOOGLE_PROTOCOL,
        APERTIUM_PROTOCOL,
        GAMES_PROTOCOL,
        MICROSOFT_PROTOCOL,
    )
}


def error_formats(protocols: Sequence[Protocol]) -> ErrorFormats:
    """Return the error format of each path that belongs to one of `protocols`."""
    return ErrorFormats({path: protocol.error_format for protocol in protocols for path in protocol.paths})
