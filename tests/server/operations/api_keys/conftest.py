from pathlib import Path

import pytest

from server.operations.api_keys.key_file import KeyFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.sqlite"


@pytest.fixture
def file(path: Path) -> KeyFile:
    return KeyFile(path)
