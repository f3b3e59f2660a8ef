"""Rules about folders: tests mirror the code, and `make test` collects all of them."""

import re
import tomllib
from pathlib import PurePosixPath

from tests.architecture.project_files import project_files, text_of

# Folders of tests/ that mirror no folder of the code.
TESTS_OF_THE_WHOLE = frozenset({"architecture", "browser", "clients", "end_to_end", "fakes", "faults"})
# They need Chromium, or node and the network; `make page-test` and `make clients` run them.
OUTSIDE_MAKE_TEST = frozenset({"tests/browser", "tests/clients"})


def test_every_folder_of_tests_mirrors_a_folder_or_a_module() -> None:
    files = set(project_files())
    folders = {folder for path in files for folder in map(str, PurePosixPath(path).parents)}
    tests = {folder for folder in folders if folder.startswith("tests/")}
    mirrors = {folder for folder in tests if folder.split("/")[1] not in TESTS_OF_THE_WHOLE}
    assert mirrors
    mirrored = folders | {file.removesuffix(".py") for file in files}
    assert not {folder for folder in mirrors if folder.removeprefix("tests/") not in mirrored}


def test_pytest_collects_every_folder_of_tests() -> None:
    configured = tomllib.loads(text_of("pyproject.toml"))["tool"]["pytest"]["ini_options"]["testpaths"]
    tests = (path.split("/") for path in project_files() if re.fullmatch(r"tests/(.+/)?test_\w+\.py", path))
    assert sorted(configured) == sorted({"/".join(parts[:2]) for parts in tests} - OUTSIDE_MAKE_TEST)
