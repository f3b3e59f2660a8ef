"""Descriptions of the API as JSON, made at the first request: that takes 0.2 s, and they never change."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI, Response
from fastapi.concurrency import run_in_threadpool


class Descriptions:
    """Encoded descriptions of one application, which must have all its routes when the first is requested."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._encoded: dict[tuple[Callable[..., object], str], bytes] = {}
        self._lock = asyncio.Lock()

    async def response(self, describe: Callable[[Mapping[str, Any], str], object], root_path: str) -> Response:
        """Return what `describe` makes of the OpenAPI description, for an application below `root_path`."""
        key = describe, root_path.rstrip("/")
        async with self._lock:
            if key not in self._encoded:
                self._encoded[key] = await run_in_threadpool(self._encode, describe, key[1])
        return Response(self._encoded[key], media_type="application/json")

    def _encode(self, describe: Callable[[Mapping[str, Any], str], object], root_path: str) -> bytes:
        description = describe(self._app.openapi(), root_path)
        return json.dumps(description, ensure_ascii=False, separators=(",", ":")).encode()


def openapi(description: Mapping[str, Any], root_path: str) -> Mapping[str, Any]:
    """Return the whole description. Operations are below `root_path`, if there is one."""
    return {**description, "servers": [{"url": root_path}]} if root_path else description
