import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_wheel_has_every_file_that_is_read() -> None:
    folder = ROOT / "loadtest"
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packed = {
        path for pattern in patterns["tool"]["setuptools"]["package-data"]["loadtest"] for path in folder.glob(pattern)
    }
    read = {path for ending in ("toml", "txt") for path in folder.rglob(f"*.{ending}")}
    assert read
    assert not read - packed
