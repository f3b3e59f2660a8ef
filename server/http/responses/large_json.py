"""JSON of response models: at once, or in small pieces off the event loop."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from pydantic import BaseModel
from pydantic_core import to_json
from starlette.responses import Response

OBJECTS_ON_LOOP: Final = 100  # models of a response that are built and written on the event loop: some milliseconds


def json_response(answer: object, status: int = 200) -> Response:
    """Return the response with a model, without its null fields, or with other values. FastAPI would validate a model
    once more."""
    return Response(to_json(answer, by_alias=True, exclude_none=True), status, media_type="application/json")


async def respond(build: Callable[[], BaseModel], *, is_large: bool) -> Response:
    """Return the response with a model, which is built and written in a thread if it is large."""
    return Response(await json_off_loop(build), media_type="application/json") if is_large else json_response(build())


async def json_off_loop(build: Callable[[], BaseModel]) -> bytes:
    """Build a response model and write it as JSON without null fields, both in a worker thread.

    pydantic holds the interpreter's lock for the whole of a model. Writing lists of models one by one leaves the event
    loop its turn: 113 MB of attention would block it for seconds.
    """
    return await asyncio.to_thread(lambda: b"".join(json_pieces(build())))


def json_pieces(value: object) -> Iterator[bytes]:
    """Yield the JSON of a model, field by field, of lists of models, item by item, and of arrays, row by row.

    Lists of models are empty in the end: freed at once, the models of 15 MB hold the interpreter's lock for 55 ms.
    """
    if isinstance(value, BaseModel):
        opening = b"{"
        for name in type(value).model_fields:
            if (field := getattr(value, name)) is not None:
                yield opening + to_json(name) + b":"
                yield from json_pieces(field)
                opening = b","
        yield b"{}" if opening == b"{" else b"}"
    elif isinstance(value, list) and value and isinstance(value[0], BaseModel):
        value.reverse()
        for index in range(len(value)):
            yield b"," if index else b"["
            yield from json_pieces(value.pop())
        yield b"]"
    elif isinstance(value, np.ndarray):
        for index, row in enumerate(value):
            yield (b"," if index else b"[") + to_json(row.tolist())
        yield b"]" if len(value) else b"[]"
    else:
        yield to_json(value, exclude_none=True)
