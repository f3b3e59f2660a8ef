"""The list of protocols. `--protocols` selects from it."""

from server.http.protocols.apertium import APERTIUM_PROTOCOL
from server.http.protocols.deepl.texts import DEEPL_PROTOCOL
from server.http.protocols.deeplx import DEEPLX_PROTOCOL
from server.http.protocols.extensions import EXTENSIONS_PROTOCOL
from server.http.protocols.games import GAMES_PROTOCOL
from server.http.protocols.google import GOOGLE_PROTOCOL
from server.http.protocols.libretranslate import LIBRETRANSLATE_PROTOCOL
from server.http.protocols.live import LIVE_PROTOCOL
from server.http.protocols.microsoft import MICROSOFT_PROTOCOL
from server.http.protocols.mtranserver import MTRANSERVER_PROTOCOL
from server.http.protocols.native.texts import NATIVE_PROTOCOL
from server.http.protocols.openai.chat import OPENAI_PROTOCOL

# A request to a path that several share belongs to the first whose rule it matches.
PROTOCOLS = {
    each.name: each
    for each in (
        NATIVE_PROTOCOL,
        LIVE_PROTOCOL,
        LIBRETRANSLATE_PROTOCOL,
        DEEPL_PROTOCOL,
        MICROSOFT_PROTOCOL,
        APERTIUM_PROTOCOL,
        GAMES_PROTOCOL,
        DEEPLX_PROTOCOL,
        MTRANSERVER_PROTOCOL,
        EXTENSIONS_PROTOCOL,
        OPENAI_PROTOCOL,
        GOOGLE_PROTOCOL,
    )
}
