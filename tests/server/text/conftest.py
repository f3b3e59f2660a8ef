"""A translator without a model, for tests of what it is told and of what becomes of that."""

import pytest

from tests.fakes.echo import make_bundle
from tests.server.text.identity import LETTERS, Identity


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    """A translator that says what it was told."""
    return Identity(make_bundle(tmp_path_factory.mktemp("letters"), sentences=LETTERS))
