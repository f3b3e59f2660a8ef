"""How each protocol writes its errors, and whose address is whose."""

from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import Scope


@dataclass(frozen=True, slots=True)
class ErrorFormat:
    """Of one protocol: the body of an error, given its code and message, and the statuses of what a client got wrong,
    or asked for too early.

    `paths` are its addresses; those that end with a slash are prefixes.
    """

    body: Callable[[str, str], dict[str, object]]
    invalid_status: int
    too_long_status: int
    not_ready_status: int = 409
    paths: tuple[str, ...] = ()


NATIVE = ErrorFormat(lambda code, message: {"error": {"code": code, "message": message}}, 422, 422)
LIBRETRANSLATE = ErrorFormat(
    lambda _, message: {"error": message},
    400,
    400,
    paths=(
        "/translate",
        "/detect",
        "/languages",
        "/health",
        "/frontend/settings",
        "/translate_file",
        "/download_file/",
        "/suggest",
        "/spec",
    ),
)
DEEPL = ErrorFormat(lambda _, message: {"message": message}, 400, 413, not_ready_status=503, paths=("/v2/", "/v3/"))


def error_shape(scope: Scope) -> ErrorFormat:
    """That of the protocol whose address was asked for; ours, where it is nobody's."""
    path = str(scope["path"]).removeprefix(str(scope.get("root_path", "")))
    for shape in (LIBRETRANSLATE, DEEPL):
        if any(path.startswith(own) if own.endswith("/") else path == own for own in shape.paths):
            return shape
    return NATIVE
