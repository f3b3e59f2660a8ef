import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from py3langid.langid import MODEL_FILE
from py3langid.langid import LanguageIdentifier as Reference

from server.text.language_identifier import LanguageIdentifier, load_identifier, open_identifier

_TEXTS = (
    "Where is the station?",
    "Wo ist der Bahnhof?",
    "GUTEN MORGEN",
    "Привет, как дела?",
    "Dobar dan, kako ste danas?",
    "नमस्ते दुनिया",
    "你好",
    "OK",
    "a\N{COMBINING ACUTE ACCENT} " * 40,
    "",
)


def _likelihoods(identifier: LanguageIdentifier) -> list[dict[str, float]]:
    return [identifier.likelihoods(text) for text in _TEXTS]


@pytest.fixture(scope="module")
def expected() -> list[object]:
    reference = Reference.from_model_file(MODEL_FILE, norm_probs=True)
    return [pytest.approx(dict(reference.rank(text)), abs=1e-5) for text in _TEXTS]


def test_the_likelihoods_among_two_labels_are_in_proportion_to_those_among_all() -> None:
    identifier = load_identifier()
    both, every = identifier.likelihoods("Guten Morgen", ("de", "nl")), identifier.likelihoods("Guten Morgen")
    assert both["de"] == pytest.approx(every["de"] / (every["de"] + every["nl"]), rel=1e-4)


def test_short_texts_are_compared_alone_as_in_company() -> None:
    identifier = load_identifier()
    together = identifier.may_be(_TEXTS, "de", "en")
    assert together == [identifier.may_be([text], "de", "en")[0] for text in _TEXTS]
    assert together[:3] == [False, True, True]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the model was loaded once."""
    folder = tmp_path_factory.mktemp("home") / "kvasir"
    open_identifier(folder)
    return folder


def _mapped_files(folder: Path) -> set[str]:
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    return {Path(line.split(maxsplit=5)[5]).name for line in lines if str(folder) in line}


def test_a_mapped_model_ranks_as_the_librarys_own(home: Path, expected: list[object]) -> None:
    identifier = open_identifier(home)
    assert _likelihoods(identifier) == expected
    assert {"ptc.npy", "nextmove.npy"} <= _mapped_files(home)
    [folder] = home.iterdir()
    assert len(list(folder.iterdir())) == 6


@pytest.mark.parametrize("kept", [0, 60, 1000])
def test_a_damaged_file_is_replaced(home: Path, tmp_path: Path, expected: list[object], kept: int) -> None:
    [folder] = home.iterdir()
    damaged = tmp_path / folder.name
    damaged.mkdir()
    for path in folder.iterdir():
        os.link(path, damaged / path.name)
    (damaged / "ptc.npy").unlink()
    (damaged / "ptc.npy").write_bytes((folder / "ptc.npy").read_bytes()[:kept])
    assert _likelihoods(open_identifier(tmp_path)) == expected
    assert list(tmp_path.iterdir()) == [damaged]
    assert (damaged / "ptc.npy").read_bytes() == (folder / "ptc.npy").read_bytes()


@pytest.fixture
def unusable_home(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "file").touch()
    yield tmp_path / "file" / "home"
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_home_is_not_needed(unusable_home: Path, expected: list[object]) -> None:
    assert _likelihoods(open_identifier(unusable_home)) == expected
    assert _likelihoods(open_identifier(None)) == expected
