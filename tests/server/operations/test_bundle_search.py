from pathlib import Path

import pytest

from bundle.manifest import MANIFEST_FILE, BundleError
from server.operations.bundle_search import bundle_folders


def _bundle(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / MANIFEST_FILE).write_text("{}", encoding="utf-8")
    return folder


def test_a_folder_of_bundles_is_all_of_them_by_name_and_each_once(tmp_path: Path) -> None:
    second, first = _bundle(tmp_path / "all" / "fr-en"), _bundle(tmp_path / "all" / "de-en")
    (tmp_path / "all" / "empty").mkdir()
    alone = _bundle(tmp_path / "en-de")
    assert bundle_folders([alone, tmp_path / "all", first]) == [alone, first, second]


def test_a_missing_folder_is_returned_as_it_is(tmp_path: Path) -> None:
    assert bundle_folders([tmp_path / "nothing"]) == [tmp_path / "nothing"]


def test_a_folder_without_bundles_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "bundles" / "empty").mkdir(parents=True)
    with pytest.raises(BundleError, match=f"{tmp_path}/bundles is not a bundle and contains none"):
        bundle_folders([tmp_path / "bundles"])
