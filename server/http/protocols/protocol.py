"""Description of one HTTP protocol: what the application needs to serve it."""

from dataclasses import dataclass

from fastapi import APIRouter

from server.http.responses.error_formats import ErrorFormat


@dataclass(frozen=True, slots=True)
class Protocol:
    """Routers, error format and upload paths of a protocol.

    `paths` belong to the protocol even where no route exists, so that their errors have its format; a path that ends
    with a slash is a prefix. `upload_paths` accept files, and POST requests to `engine_free_paths` translate nothing: a
    full server handles them. With API keys, `open_paths` need none, and clients of the protocol may send theirs as the
    parameter `key_parameter`, in the query as one of `key_queries`, or in one of the headers `key_headers`, without a
    scheme.
    """

    name: str
    routers: tuple[APIRouter, ...]
    error_format: ErrorFormat
    paths: tuple[str, ...]
    upload_paths: tuple[str, ...] = ()
    engine_free_paths: tuple[str, ...] = ()
    open_paths: tuple[str, ...] = ()
    key_parameter: str | None = None
    key_queries: tuple[str, ...] = ()
    key_headers: tuple[str, ...] = ()

    def owns(self, path: str) -> bool:
        """Return whether a path of an address, without its query, belongs to the protocol."""
        return _is_one_of(path, self.paths)

    def needs_engine(self, path: str) -> bool:
        """Return whether a POST request to a path of the protocol may need an engine at once."""
        return path not in self.upload_paths and not _is_one_of(path, self.engine_free_paths)

    def is_open(self, path: str) -> bool:
        """Return whether a path needs no API key."""
        return _is_one_of(path, self.open_paths)


def _is_one_of(path: str, own: tuple[str, ...]) -> bool:
    return any(path.startswith(each) if each.endswith("/") else path == each for each in own)
