"""Which bundles the folders of `--model` name."""

from collections.abc import Iterable
from pathlib import Path

from bundle.manifest import MANIFEST_FILE, BundleError


def bundle_folders(folders: Iterable[Path]) -> list[Path]:
    """Each folder that is a bundle, and the bundles that lie in each folder that is none, by name.

    Raises `BundleError` for a folder without any. A folder that is not there is left to `load_bundle`, which says more.
    """
    found: list[Path] = []
    for folder in folders:
        if (folder / MANIFEST_FILE).is_file() or not folder.is_dir():
            found.append(folder)
            continue
        inside = sorted(path.parent for path in folder.glob(f"*/{MANIFEST_FILE}"))
        if not inside:
            raise BundleError(
                f"{folder} is no bundle, and no folder in it is one: {MANIFEST_FILE} is missing; "
                "`kvasir export CHECKPOINT FOLDER` makes a bundle"
            )
        found += inside
    return list(dict.fromkeys(found))
