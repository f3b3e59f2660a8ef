"""The echo model, made once, and where the model that comes along is."""

from pathlib import Path

import pytest

from export.bundle import Bundle, load_bundle
from server.settings import DEFAULT_MODEL
from tests.server.echo import EchoGenerator, make_bundle


@pytest.fixture(scope="session")
def echo_bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A bundle with a real tokenizer and no graphs."""
    folder: Path = tmp_path_factory.mktemp("echo-bundle")
    return make_bundle(folder)


@pytest.fixture
def echo(echo_bundle: Bundle) -> EchoGenerator:
    """An engine that answers with its source."""
    return EchoGenerator(echo_bundle)


@pytest.fixture(scope="session")
def default_bundle() -> Bundle:
    """The model that comes along."""
    return load_bundle(DEFAULT_MODEL)
