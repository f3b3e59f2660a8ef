"""A pipeline without a model, for tests of model inputs and of their restoration."""

import pytest
from hypothesis import settings

from tests.fakes.echo import make_bundle
from tests.server.text.identity import LETTERS, Identity

# Other work on the machine must not fail a test.
settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    """Return a pipeline whose model returns its input."""
    return Identity(make_bundle(tmp_path_factory.mktemp("letters"), sentences=LETTERS))
