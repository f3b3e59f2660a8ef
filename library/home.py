"""The models that `kvasir pull` made: one folder each below KVASIR_HOME, with their origin and a lock."""

import contextlib
import fcntl
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from bundle.home_folder import home_folder
from bundle.loading import load_bundle
from bundle.manifest import BundleConfig, BundleError
from model.temporary_folders import temporary_folder

ORIGIN_FILE: Final = "origin.json"


@dataclass(frozen=True, slots=True)
class Origin:
    """Source of a model. `name` is the one that commands accept, `address` is the page or the file on the web.

    `source` and `target` are languages that were required of its conversion.
    """

    name: str
    address: str
    licence: str | None = None
    sha256: str | None = None
    source: tuple[str, ...] = ()
    target: tuple[str, ...] = ()

    @classmethod
    def of(cls, folder: Path) -> "Origin":
        """Return the origin of a model on disk; an unknown one if its file is missing or damaged."""
        try:
            stored = json.loads((folder / ORIGIN_FILE).read_text("utf-8"))
            texts = {name: value for name, value in stored.items() if isinstance(value, str)}
            source, target = (tuple(map(str, stored.get(side) or ())) for side in ("source", "target"))
            return cls(texts["name"], texts["address"], texts.get("licence"), texts.get("sha256"), source, target)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return cls(folder.name, "unknown")


@dataclass(frozen=True, slots=True)
class Entry:
    """A model on disk. `problem` is empty, or the reason why it cannot be served; then `config` is None."""

    folder: Path
    origin: Origin
    config: BundleConfig | None
    problem: str = ""

    @property
    def size(self) -> int:
        """Return the size of the files in bytes."""
        return sum(path.stat().st_size for path in self.folder.iterdir() if path.is_file())


class Home:
    """The folder of all pulled models."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.models = root / "models"

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Home":
        """Return the folder that KVASIR_HOME names, or the default one."""
        return cls(home_folder(environment))

    def folder(self, name: str, precision: str) -> Path:
        """Return the folder of a model, present or not."""
        return self.models / f"{_file_name(name)}--{precision}"

    def entries(self) -> list[Entry]:
        """Return all models, sorted by folder; damaged ones have a problem."""
        if not self.models.is_dir():
            return []
        return [_entry(folder) for folder in sorted(self.models.iterdir()) if folder.is_dir()]

    def add(self, staged: Path, folder: Path, origin: Origin) -> None:
        """Move a finished bundle to its place, with its origin. A model that is there already is replaced."""
        (staged / ORIGIN_FILE).write_text(json.dumps(asdict(origin), indent=2) + "\n", "utf-8")
        self.models.mkdir(parents=True, exist_ok=True)
        if folder.exists():
            self.remove(folder)
        staged.rename(folder)

    def remove(self, folder: Path) -> None:
        """Delete a model. Servers that have it open keep it until they end."""
        # In one move, so that no other process sees half of it.
        with temporary_folder(self.root, ".removed-") as doomed:
            folder.rename(doomed / folder.name)

    @contextlib.contextmanager
    def lock(self, folder: Path, report: Callable[[str], None]) -> Iterator[None]:
        """Hold the lock of a model. A second process waits for it; `report` receives a line before that."""
        path = self.root / "locks" / f"{folder.name}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                report(f"waiting for another process that makes {folder.name}")
                fcntl.flock(stream, fcntl.LOCK_EX)
            yield


def _file_name(name: str) -> str:
    """Return a name without characters that a path gives a meaning to."""
    return "--".join("".join(c if c.isalnum() or c in "._-" else "-" for c in part) for part in name.split("/")).strip(
        ".-"
    )


def _entry(folder: Path) -> Entry:
    origin = Origin.of(folder)
    try:
        return Entry(folder, origin, load_bundle(folder, verify_digests=False).config)
    except BundleError as error:
        return Entry(folder, origin, None, str(error))
