"""Descriptions of the API as JSON."""

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
    assert [bytes(descriptions.response(paths, "").body) for _ in range(3)] == [b"{}"] * 3
    assert len(made) == 1


def test_the_description_of_a_mounted_application_names_where_it_is() -> None:
    descriptions = Descriptions(FastAPI(docs_url=None, redoc_url=None))
    assert b"servers" not in bytes(descriptions.response(openapi, "").body)
    assert b'"servers":[{"url":"/below"}]' in bytes(descriptions.response(openapi, "/below/").body)
