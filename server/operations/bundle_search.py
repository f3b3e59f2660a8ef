"""Bundles found in the folders of `--model`."""

from collections.abc import Iterable
from pathlib import Path

from bundle.manifest import MANIFEST_FILE, BundleError


def bundle_folders(folders: Iterable[Path]) -> list[Path]:
    """Return each folder that is a bundle, and the bundles within each folder that is not one, sorted by name.

    Raises `BundleError` for a folder without bundles. A missing folder is returned as it is: `load_bundle` has the more
    precise error.
    """
    found: list[Path] = []
    for folder in folders:
        if (folder / MANIFEST_FILE).is_file() or not folder.is_dir():
            found.append(folder)
            continue
        inside = sorted(path.parent for path in folder.glob(f"*/{MANIFEST_FILE}"))
        if not inside:
            raise BundleError(
                f"{folder} is not a bundle and contains none: {MANIFEST_FILE} is missing; "
                "`kvasir export CHECKPOINT FOLDER` makes a bundle"
            )
        found += inside
    return list(dict.fromkeys(found))
