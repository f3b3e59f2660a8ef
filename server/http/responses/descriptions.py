"""Descriptions of the API as JSON, encoded once: that takes 3 ms, and they never change."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI, Response


class Descriptions:
    """Encoded descriptions of one application, which must have all its routes when the first is requested."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._encoded: dict[tuple[Callable[..., object], str], bytes] = {}

    def response(self, describe: Callable[[Mapping[str, Any], str], object], root_path: str) -> Response:
        """Return what `describe` makes of the OpenAPI description, for an application below `root_path`."""
        key = describe, root_path.rstrip("/")
        if key not in self._encoded:
            description = describe(self._app.openapi(), key[1])
            self._encoded[key] = json.dumps(description, ensure_ascii=False, separators=(",", ":")).encode()
        return Response(self._encoded[key], media_type="application/json")


def openapi(description: Mapping[str, Any], root_path: str) -> Mapping[str, Any]:
    """Return the whole description. Operations are below `root_path`, if there is one."""
    return {**description, "servers": [{"url": root_path}]} if root_path else description
