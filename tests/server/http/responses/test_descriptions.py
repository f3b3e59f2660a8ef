"""Descriptions of the API as JSON."""

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI

from server.http.responses.descriptions import Descriptions, openapi


def test_a_description_is_made_and_encoded_once() -> None:
    made: list[object] = []

    def paths(description: Mapping[str, Any], _: str) -> object:
        made.append(description)
        return description["paths"]

    descriptions = Descriptions(FastAPI(docs_url=None, redoc_url=None))

    async def bodies() -> list[bytes]:
        responses = await asyncio.gather(*(descriptions.response(paths, "") for _ in range(3)))
        return [bytes(response.body) for response in responses]

    assert asyncio.run(bodies()) == [b"{}"] * 3
    assert len(made) == 1


def test_the_event_loop_goes_on_while_a_description_is_made() -> None:
    goes_on = threading.Event()

    def wait(_: Mapping[str, Any], __: str) -> bool:
        return goes_on.wait(30)

    async def body() -> bytes:
        response = asyncio.create_task(Descriptions(FastAPI()).response(wait, ""))
        await asyncio.sleep(0)
        goes_on.set()
        return bytes((await response).body)

    assert asyncio.run(body()) == b"true"


def test_the_description_of_a_mounted_application_names_where_it_is() -> None:
    descriptions = Descriptions(FastAPI(docs_url=None, redoc_url=None))
    assert b"servers" not in bytes(asyncio.run(descriptions.response(openapi, "")).body)
    assert b'"servers":[{"url":"/below"}]' in bytes(asyncio.run(descriptions.response(openapi, "/below/")).body)
