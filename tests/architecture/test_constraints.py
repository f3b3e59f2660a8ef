"""Offline check that `constraints.txt` resolves on every supported Python, from the metadata of installed packages."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
# Extras that one environment can hold. `gpu` is not among them: it replaces onnxruntime.
EXTRAS = frozenset({"dev", "bench"})
OLDEST = "3.11.0"
PYTHONS = (OLDEST, "3.12.0", "3.13.0", "3.14.0")
# pip freeze omits setuptools. Builds of torch for CUDA require packages that the CPU build does not.
UNPINNED = re.compile(r"setuptools|triton|nvidia-.*|cuda-.*")
# `make test` does not install it, so its metadata is available in the environment of `make constraints` only.
BENCHMARKS_ONLY = frozenset({"pymarian"})


@dataclass(frozen=True, slots=True)
class Release:
    """Metadata of one release of a distribution."""

    version: str
    requires_python: str
    requires: tuple[str, ...]


Find = Callable[[str], Release | None]


@cache
def _project() -> Mapping[str, object]:
    project: Mapping[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


@cache
def _project_release() -> Release:
    project = _project()
    dependencies, extras = project["dependencies"], project["optional-dependencies"]
    assert isinstance(dependencies, list)
    assert isinstance(extras, dict)
    requires = [*dependencies]
    for extra, wanted in extras.items():
        for requirement in map(Requirement, wanted):
            condition = f'extra == "{extra}"'
            marker = f"({requirement.marker}) and {condition}" if requirement.marker else condition
            requirement.marker = None
            requires.append(f"{requirement}; {marker}")
    return Release("0", str(project["requires-python"]), tuple(requires))


@cache
def _installed(name: str) -> Release | None:
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None
    python = ",".join(found.metadata.get_all("Requires-Python") or ())
    return Release(found.version, python, tuple(found.requires or ()))


def _pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pins}


def problems(root: str, extras: Iterable[str], python: str, pins: Mapping[str, str], find: Find) -> list[str]:
    """Every reason why `root` with `extras` cannot be installed from `pins` on this version of Python."""
    major, minor, _ = python.split(".")
    environment = {key: str(value) for key, value in default_environment().items()}
    environment |= {"python_full_version": python, "python_version": f"{major}.{minor}"}
    found: dict[str, None] = {}
    waiting = [(root, extra) for extra in ("", *sorted(extras))]
    done: set[tuple[str, str]] = set()
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in done:
            continue
        done.add((name, extra))
        release = find(name)
        if release is None:
            if name not in BENCHMARKS_ONLY:
                found[f"{name} is not installed here; run `make venv-dev`"] = None
            continue
        pin = release.version if name == root else pins[name]
        if Version(release.version).public != Version(pin).public:
            found[f"{name} {release.version} is installed instead of {pin}; run `make venv-dev`"] = None
            continue  # this metadata is that of another release
        if not SpecifierSet(release.requires_python).contains(python):
            found[f"{name} {pin} needs Python {release.requires_python}"] = None
        for requirement in map(Requirement, release.requires):
            if requirement.marker and not requirement.marker.evaluate({**environment, "extra": extra}):
                continue
            needed = canonicalize_name(requirement.name)
            if needed != root and needed not in pins:
                if not UNPINNED.fullmatch(needed):
                    found[f"{name} {pin} requires {needed}, which has no pin"] = None
                continue
            if needed != root and not requirement.specifier.contains(pins[needed], prereleases=True):
                found[f"{name} {pin} requires {requirement}, and the pin is {pins[needed]}"] = None
            waiting += [(needed, wanted) for wanted in ("", *sorted(requirement.extras))]
    return sorted(found)


def _find(name: str) -> Release | None:
    return _project_release() if name == _root() else _installed(name)


@cache
def _root() -> str:
    return canonicalize_name(str(_project()["name"]))


@pytest.mark.parametrize("python", PYTHONS)
def test_the_pins_resolve_on_every_supported_python(python: str) -> None:
    found = problems(_root(), EXTRAS, python, _pins(), _find)
    advice = "limit the version in pyproject.toml and run `make constraints`"
    assert not found, f"constraints.txt does not resolve on Python {python}; {advice}: {'; '.join(found)}"


def test_the_oldest_supported_python_is_that_of_the_metadata() -> None:
    assert SpecifierSet(str(_project()["requires-python"])) == SpecifierSet(f">={OLDEST.removesuffix('.0')}")


def test_every_pin_is_needed_by_an_extra() -> None:
    reached: set[str] = set()

    def find(name: str) -> Release | None:
        reached.add(name)
        return _find(name)

    problems(_root(), EXTRAS, OLDEST, _pins(), find)
    unused = _pins().keys() - reached
    assert not unused, f"no extra requires {', '.join(sorted(unused))}; run `make constraints`"
