"""A server whose clients need an API key."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from server.http.app import create_app
from server.operations.api_keys.key_file import KeyFile
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator


@pytest.fixture
def keys(tmp_path: Path) -> KeyFile:
    """The file of its keys, without any."""
    return KeyFile(tmp_path / "keys.sqlite")


@pytest.fixture
def app(keys: KeyFile, tmp_path: Path, echo: EchoGenerator) -> FastAPI:
    """The application, which reads that file."""
    return create_app(Settings(api_keys=tmp_path / "keys.sqlite"), [echo])


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    """A client of the application while it runs; it sends no key by itself."""
    with TestClient(app) as client:
        yield client
