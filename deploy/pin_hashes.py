"""Write the packages of the image with the hashes of their wheels: `deploy/requirements*.txt`.

`python deploy/pin_hashes.py` (with pip and the network) writes them again, after `make constraints`. The versions are
those of constraints.txt; the wheels are those for Python 3.11 on Linux, x86_64 and aarch64. pip rejects every other
wheel: `pip install --require-hashes -r deploy/requirements.txt`.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = "3.11"
MACHINES = ("x86_64", "aarch64")
_GLIBC = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
_HEADING = f"""\
# Packages of the image with the hashes of their wheels: Python {PYTHON}, Linux, {" and ".join(MACHINES)}.
# Written by `python deploy/pin_hashes.py` from pyproject.toml and constraints.txt.
"""


def required() -> dict[str, list[str]]:
    """Return the requirements by file: of serving with traces, and of building the native operators."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    # Traces too: nothing can be installed into an image that is read-only.
    serving = [*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["telemetry"]]
    return {
        "requirements.txt": serving,
        "requirements-build.txt": project["build-system"]["requires"],
    }


def resolved(requirements: Sequence[str], machine: str) -> dict[str, set[str]]:
    """Return the SHA-256 of the wheels that pip would install on a machine, by `name==version`."""
    platforms = [flag for glibc in _GLIBC for flag in ("--platform", f"{glibc}_{machine}")]
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder) / "wanted.txt"
        wanted.write_text("\n".join(requirements), encoding="utf-8")
        report = Path(folder) / "report.json"
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"),
                *("--only-binary=:all:", "--python-version", PYTHON, *platforms, "--target", folder),
                *("-c", str(ROOT / "constraints.txt"), "-r", str(wanted), "--report", str(report)),
            ],
            check=True,
        )
        installed = json.loads(report.read_text(encoding="utf-8"))["install"]
    return {
        f"{_name(each['metadata']['name'])}=={each['metadata']['version']}": {
            each["download_info"]["archive_info"]["hashes"]["sha256"]
        }
        for each in installed
    }


def written(by_machine: Iterable[Mapping[str, set[str]]]) -> str:
    """Return the content of the file. Raises ValueError if two machines would get different versions."""
    hashes: dict[str, set[str]] = {}
    for pins in by_machine:
        for pin, its_hashes in pins.items():
            hashes.setdefault(pin, set()).update(its_hashes)
    names = [pin.partition("==")[0] for pin in hashes]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"the machines have different versions of {', '.join(twice)}")
    separator = " \\\n    --hash=sha256:"
    lines = [separator.join([pin, *sorted(hashes[pin])]) for pin in sorted(hashes)]
    return _HEADING + "\n".join(lines) + "\n"


def _name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    for name, requirements in required().items():
        content = written([resolved(requirements, machine) for machine in MACHINES])
        (ROOT / "deploy" / name).write_text(content, encoding="utf-8")
