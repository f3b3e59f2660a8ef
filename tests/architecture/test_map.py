"""Rules about folders: the map, the import contracts and the tests cover every folder."""

import re
import tomllib
from collections.abc import Collection, Iterable
from pathlib import PurePosixPath
from typing import Any

import pytest

from tests.architecture.project_files import project_files, text_of

MAX_SERVER_ENTRIES = 10
MAX_ARCHITECTURE_LINES = 150

# Folders of tests/ that mirror no folder of the code.
TESTS_OF_THE_WHOLE = frozenset({"architecture", "browser", "clients", "end_to_end", "fakes", "faults"})
# They need Chromium, or node and the network; `make page-test` and `make clients` run them.
OUTSIDE_MAKE_TEST = frozenset({"tests/browser", "tests/clients"})
# Bundles are data: each has a model card.
DATA_FOLDERS = frozenset({"models"})


def test_the_map_has_one_line_for_every_folder() -> None:
    folders = _folders(project_files())
    assert _differences(_mapped(text_of("ARCHITECTURE.md"), folders), folders) == []


def test_architecture_stays_short() -> None:
    assert text_of("ARCHITECTURE.md").count("\n") < MAX_ARCHITECTURE_LINES


@pytest.mark.parametrize(
    ("architecture", "difference"),
    [
        ("| `server/` | x |", "not in the map: server/text"),
        ("| `server/` | x |\n| `server/text/` | x |\n| `gone/` | x |", "not on disk: gone"),
        ("| `server/` | x |\n| `server/text/` | x |\n| `server/` | y |", "twice in the map: server"),
    ],
)
def test_a_wrong_map_is_found(architecture: str, difference: str) -> None:
    paths = ["kvasir.py", "server/__init__.py", "server/text/readers.py", "tests/server/test_text.py"]
    folders = _folders(paths) - {"tests"}
    assert _differences(_mapped(architecture, folders), folders) == [difference]


def test_one_row_stands_for_every_folder_of_a_kind() -> None:
    folders = {"a", "a/one", "a/two", "a/two/deep"}
    assert _differences(_mapped("| `a/` | x |\n| `a/<name>/` | x |", folders), folders) == [
        "not in the map: a/two/deep"
    ]


def test_the_map_lists_only_tests_without_a_mirrored_folder() -> None:
    paths = ["server/a.py", "tests/conftest.py", "tests/server/test_a.py", "tests/fakes/echo.py", "models/en/a.onnx"]
    assert _folders(paths) == {"server", "tests", "tests/fakes"}


def test_the_top_of_the_server_has_at_most_ten_entries() -> None:
    assert len(_entries("server", project_files())) <= MAX_SERVER_ENTRIES
    assert len(_entries("server", [f"server/file_{number}.py" for number in range(11)])) > MAX_SERVER_ENTRIES


def test_every_top_level_package_is_a_root_of_the_contracts() -> None:
    contracts = _import_linter()
    top_level = {package for package in _packages(project_files()) if "/" not in package} - DATA_FOLDERS
    assert set(contracts["root_packages"]) == top_level
    rows = [
        row
        for contract in contracts["contracts"]
        if contract["name"] == "Top-level packages"
        for row in contract["layers"]
    ]
    assert set(re.findall(r"\w+", " ".join(rows))) == top_level


def test_every_folder_with_sub_packages_has_an_exhaustive_contract() -> None:
    missing = _without_contract(_packages(project_files()), _import_linter()["contracts"])
    assert not missing, f"no exhaustive layers contract in pyproject.toml: {missing}"


def test_a_folder_without_an_exhaustive_contract_is_found() -> None:
    packages = {"server", "server/text", "server/text/readers", "server/http", "server/http/page"}
    contracts: list[dict[str, Any]] = [
        {"type": "layers", "containers": ["server"], "exhaustive": True},
        {"type": "layers", "containers": ["server.text"]},
        {"type": "layers", "containers": ["server.http"], "exhaustive": True, "exhaustive_ignores": ["page"]},
    ]
    assert _without_contract(packages, contracts) == ["server/http", "server/text"]


def test_no_contract_ignores_an_import_between_folders() -> None:
    assert not _ignored_between_folders(_import_linter()["contracts"])


def test_an_ignored_import_between_folders_is_found() -> None:
    within, between = "server.text.glossary -> server.text.readers.html", "server.text.glossary -> server.engine.engine"
    assert _ignored_between_folders([{"ignore_imports": [within, between]}]) == [between]
    assert _ignored_between_folders([{"ignore_imports": ["server.** -> export.int8"]}])


def test_every_folder_of_tests_mirrors_a_folder() -> None:
    assert not _without_mirror(project_files())
    assert _without_mirror(["server/text/a.py", "tests/server/text/test_a.py", "tests/server/texts/test_b.py"]) == [
        "tests/server/texts"
    ]


def test_pytest_collects_every_folder_of_tests() -> None:
    configured = tomllib.loads(text_of("pyproject.toml"))["tool"]["pytest"]["ini_options"]["testpaths"]
    assert sorted(configured) == _test_paths(project_files())


def test_a_folder_without_tests_is_not_collected() -> None:
    paths = ["tests/test_a.py", "tests/fakes/echo.py", "tests/server/text/test_b.py", "tests/browser/test_c.py"]
    assert _test_paths(paths) == ["tests/server", "tests/test_a.py"]


def _mapped(architecture: str, folders: Collection[str]) -> list[str]:
    """Return the folders of the rows. A row of `a/<name>/` stands for every folder directly in `a`."""
    rows = re.findall(r"^\| `([\w/<>]+)/` \|", architecture, re.MULTILINE)
    named = [row.removesuffix("/<name>") for row in rows if row.endswith("/<name>")]
    each = [folder for folder in folders for parent in named if str(PurePosixPath(folder).parent) == parent]
    return [row for row in rows if "<" not in row] + each


def _folders(paths: Iterable[str]) -> set[str]:
    """Return the folders that directly contain a file.

    Hidden and data folders, and folders of tests that mirror another, are left out.
    """
    paths = list(paths)
    top_level = {path.split("/")[0] for path in paths if "/" in path}
    folders = set()
    for path in paths:
        parts = PurePosixPath(path).parent.parts
        if not parts or parts[0].startswith(".") or parts[0] in DATA_FOLDERS:
            continue
        if parts[0] == "tests":
            if len(parts) > 1 and parts[1] in top_level - TESTS_OF_THE_WHOLE:
                continue
            parts = parts[:2]
        folders.add("/".join(parts))
    return folders


def _differences(mapped: list[str], folders: Collection[str]) -> list[str]:
    return [
        *(f"not in the map: {folder}" for folder in sorted(set(folders) - set(mapped))),
        *(f"not on disk: {folder}" for folder in sorted(set(mapped) - set(folders))),
        *(f"twice in the map: {folder}" for folder in sorted(set(mapped)) if mapped.count(folder) > 1),
    ]


def _entries(folder: str, paths: Iterable[str]) -> set[str]:
    return {path.removeprefix(f"{folder}/").split("/")[0] for path in paths if path.startswith(f"{folder}/")}


def _packages(paths: Iterable[str]) -> set[str]:
    markers = (PurePosixPath(path) for path in paths if path.endswith("/__init__.py"))
    return {str(marker.parent) for marker in markers}


def _import_linter() -> dict[str, Any]:
    read: dict[str, Any] = tomllib.loads(text_of("pyproject.toml"))["tool"]["importlinter"]
    return read


def _without_contract(packages: Collection[str], contracts: Iterable[dict[str, Any]]) -> list[str]:
    covered = {
        container.replace(".", "/")
        for contract in contracts
        if contract["type"] == "layers" and contract.get("exhaustive") and not contract.get("exhaustive_ignores")
        for container in contract.get("containers", ())
    }
    with_sub_packages = {str(PurePosixPath(package).parent) for package in packages} & set(packages)
    return sorted(with_sub_packages - covered)


def _ignored_between_folders(contracts: Iterable[dict[str, Any]]) -> list[str]:
    """Return the ignored imports whose ends are in two folders: top-level packages, or folders of the server."""
    ignored = [line for contract in contracts for line in contract.get("ignore_imports", ())]
    return [line for line in ignored if len({_folder_of(end.strip()) for end in line.split("->")}) > 1]


def _folder_of(module: str) -> tuple[str, ...]:
    parts = module.split(".")
    return tuple(parts[: 2 if parts[0] == "server" else 1])


def _without_mirror(paths: Iterable[str]) -> list[str]:
    folders = {folder for path in paths for folder in map(str, PurePosixPath(path).parents)}
    return sorted(
        folder
        for folder in folders
        if folder.startswith("tests/")
        and folder.split("/")[1] not in TESTS_OF_THE_WHOLE
        and folder.removeprefix("tests/") not in folders
    )


def _test_paths(paths: Iterable[str]) -> list[str]:
    tests = (path.split("/") for path in paths if re.fullmatch(r"tests/(.+/)?test_\w+\.py", path))
    return sorted({"/".join(parts[:2]) for parts in tests} - OUTSIDE_MAKE_TEST)
