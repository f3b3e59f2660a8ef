"""The echo model, made once, and where the model that comes along is."""

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from bundle.loading import Bundle, load_bundle
from server.operations.defaults import DEFAULT_MODEL
from tests.fakes.echo import EchoFor, EchoGenerator, make_bundle


@pytest.fixture(scope="session", autouse=True)
def _memory_is_kept() -> Iterator[None]:
    """Models of these tests are fakes; a collection for each that is unloaded looks at the libraries of all tests."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("server.workers.on_demand_engine.return_unused_memory", lambda: None)
        yield


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
def echo_for(tmp_path_factory: pytest.TempPathFactory) -> EchoFor:
    """An engine that answers with its source, for a pair of languages; each pair's bundle is made once."""

    @functools.cache
    def made(source: str, target: str) -> Bundle:
        return make_bundle(tmp_path_factory.mktemp(f"{source}-{target}"), languages=(source, target))

    return lambda source, target: EchoGenerator(made(source, target))


@pytest.fixture(scope="session")
def default_bundle() -> Bundle:
    """The model that comes along."""
    return load_bundle(DEFAULT_MODEL)
