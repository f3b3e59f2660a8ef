"""The servers and the exported model of the end-to-end tests; making one takes seconds, so they are shared."""

from collections.abc import Callable, Iterator
from functools import cache

import pytest

from bundle.loading import load_bundle
from bundle.tensors import Precision
from export.exporter import export_bundle
from model.checkpoints.weights import build_model
from model.families.own import read_own_model
from model.families.registry import read_checkpoint
from tests.end_to_end.exported import Exported, write_own_model, write_random_checkpoint
from tests.end_to_end.generating import Generating, export_generating, serve_generating
from tests.end_to_end.servers import Served, relabelled, started
from tests.made_once import made_once


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    """A server that decodes every sentence, however often it was asked; shared by all tests that leave it running.

    It rejects no request and ends none: on a slow machine a burst can take long enough to count as overload.
    """
    patience = ("--max-queue-seconds", "3600", "--request-timeout-seconds", "3600")
    yield from started("--cache-sentences", "0", *patience)


@pytest.fixture(scope="session")
def polyglot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of four bundles in one folder: English to German, French and Spanish, and German to English.

    All four are the model that comes along: only what it is given in English to make German of makes sense.
    """
    folder = tmp_path_factory.mktemp("bundles")
    for source, target in (("en", "de"), ("de", "en"), ("en", "fr"), ("en", "es")):
        relabelled(folder, source, target)
    yield from started("--model", str(folder), "--threads", "1")


@pytest.fixture
def draining() -> Iterator[Served]:
    """A server of its own, to be taken down."""
    yield from started("--drain-timeout-seconds", "600", "--cache-sentences", "0")


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Precision], Exported]:
    """Bundles of one random model, each made once."""
    checkpoint = made_once(tmp_path_factory, "random-checkpoint", write_random_checkpoint)

    @cache
    def export(precision: Precision) -> Exported:
        folder = made_once(
            tmp_path_factory, f"random-{precision}", lambda to: export_bundle(checkpoint, to / "bundle", precision)
        )
        return Exported(load_bundle(folder / "bundle"), build_model(read_checkpoint(checkpoint)))

    return export


@pytest.fixture(scope="session")
def exported_recurrent(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Precision], Exported]:
    """Bundles of one random model with a recurrent decoder, each made once."""
    folder = made_once(tmp_path_factory, "recurrent-model", write_own_model)
    config_file, weights_file = folder / "model.json", folder / "model.safetensors"

    @cache
    def export(precision: Precision) -> Exported:
        made = made_once(
            tmp_path_factory,
            f"recurrent-{precision}",
            lambda to: export_bundle(weights_file, to / "bundle", precision, config_file=config_file),
        )
        return Exported(load_bundle(made / "bundle"), build_model(read_own_model(config_file, weights_file)))

    return export


@pytest.fixture(scope="session")
def generating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Generating]:
    """A server of models that generate and embed."""
    bundles = made_once(tmp_path_factory, "generating-bundles", export_generating)
    yield from serve_generating(tmp_path_factory.mktemp("generating"), bundles)


@pytest.fixture
def remembering() -> Iterator[Served]:
    """A server with its cache, to be taken down."""
    yield from started("--drain-timeout-seconds", "600")
