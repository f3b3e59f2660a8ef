"""Headers of a request, read from its scope."""

from starlette.types import Scope


def header(scope: Scope, name: bytes) -> str:
    """Return the first header with this lower-case name; the empty string without one.

    Starlette's `Headers` decodes every name of the request for each value that is read.
    """
    for own, value in scope["headers"]:
        if own == name:
            return str(value, "latin-1")
    return ""
