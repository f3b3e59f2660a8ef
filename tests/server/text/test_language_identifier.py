import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from server.text.language_identifier import open_identifier

_TEXTS = ("Where is the station?", "Wo ist der Bahnhof?", "Привет, как дела?", "你好", "OK", "")


def _ranks(identifier: LanguageIdentifier) -> list[list[tuple[str, float]]]:
    return [identifier.rank(text) for text in _TEXTS]


@pytest.fixture(scope="module")
def expected() -> list[list[tuple[str, float]]]:
    return _ranks(LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the model was loaded once."""
    folder = tmp_path_factory.mktemp("home") / "kvasir"
    open_identifier(folder)
    return folder


def _mapped_files(folder: Path) -> set[str]:
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    return {Path(line.split(maxsplit=5)[5]).name for line in lines if str(folder) in line}


def test_a_mapped_model_ranks_as_the_librarys_own(home: Path, expected: list[list[tuple[str, float]]]) -> None:
    identifier = open_identifier(home)
    assert _ranks(identifier) == expected
    assert {"ptc.npy", "nextmove.npy"} <= _mapped_files(home)
    [folder] = home.iterdir()
    assert len(list(folder.iterdir())) == 6


@pytest.mark.parametrize("kept", [0, 60, 1000])
def test_a_damaged_file_is_replaced(
    home: Path, tmp_path: Path, expected: list[list[tuple[str, float]]], kept: int
) -> None:
    [folder] = home.iterdir()
    damaged = tmp_path / folder.name
    damaged.mkdir()
    for path in folder.iterdir():
        os.link(path, damaged / path.name)
    (damaged / "ptc.npy").unlink()
    (damaged / "ptc.npy").write_bytes((folder / "ptc.npy").read_bytes()[:kept])
    assert _ranks(open_identifier(tmp_path)) == expected
    assert list(tmp_path.iterdir()) == [damaged]
    assert (damaged / "ptc.npy").read_bytes() == (folder / "ptc.npy").read_bytes()


@pytest.fixture
def unusable_home(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "file").touch()
    yield tmp_path / "file" / "home"
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_home_is_not_needed(unusable_home: Path, expected: list[list[tuple[str, float]]]) -> None:
    assert _ranks(open_identifier(unusable_home)) == expected
    assert _ranks(open_identifier(None)) == expected
