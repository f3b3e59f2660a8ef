"""Description of one HTTP protocol: what the application needs to serve it."""

from dataclasses import dataclass

from fastapi import APIRouter

from server.http.responses.error_formats import ErrorFormat


@dataclass(frozen=True, slots=True)
class Protocol:
    """Routers, error format and upload paths of a protocol.

    `paths` belong to the protocol even where no route exists, so that their errors have its format; a path that ends
    with a slash is a prefix. `upload_paths` accept files.
    """

    name: str
    routers: tuple[APIRouter, ...]
    error_format: ErrorFormat
    paths: tuple[str, ...]
    upload_paths: tuple[str, ...] = ()
