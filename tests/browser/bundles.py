"""Models for other languages: the default one under other names."""

import json
from pathlib import Path

from server.operations.settings import DEFAULT_MODEL


def renamed_bundle(folder: Path, source: str, target: str) -> Path:
    """A bundle that says it translates from `source` to `target`; it still writes German."""
    bundle = folder / f"renamed-{source}-{target}"
    bundle.mkdir()
    for path in DEFAULT_MODEL.iterdir():
        if path.name != "bundle.json":
            (bundle / path.name).symlink_to(path)
    config = json.loads((DEFAULT_MODEL / "bundle.json").read_text(encoding="utf-8"))
    config |= {"name": bundle.name, "source_languages": [source], "target_languages": [target]}
    (bundle / "bundle.json").write_text(json.dumps(config), encoding="utf-8")
    return bundle
