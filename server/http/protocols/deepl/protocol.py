"""The DeepL-compatible protocol as a value for the registry."""

from server.http.protocols.deepl import documents, glossaries, languages, memories, texts
from server.http.protocols.deepl.fields import DEEPL
from server.http.protocols.protocol import Protocol

DEEPL_PROTOCOL = Protocol(
    name="deepl",
    routers=(texts.router, languages.router, documents.router, glossaries.router, memories.router),
    error_format=DEEPL,
    paths=("/v2/", "/v3/"),
    upload_paths=(documents.PATH,),
    # The progress and the content of a document are POST requests.
    engine_free_paths=(
        f"{documents.PATH}/",
        "/v2/glossaries",
        "/v3/glossaries",
        memories.PATH,
        f"{memories.PATH}/",
        "/v2/languages",
        "/v3/languages",
        "/v2/usage",
    ),
    open_paths=(memories.UPLOAD_PATH, memories.DOWNLOAD_PATH),  # their addresses have keys of their own
    raw_upload_paths=(memories.UPLOAD_PATH,),
    key_parameter="auth_key",
)
