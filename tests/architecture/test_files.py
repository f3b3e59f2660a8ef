"""Rules about single files: names, package markers, foreign paths and hosts."""

import re

import pytest

from tests.architecture.project_files import project_files, text_of

EMPTY_WORD = re.compile(r"(^|[/_])(utils?|helpers?|common|managers?|misc)(?=[/_.])")

INSTALL_OF_ANOTHER = re.compile(
    r"""(pip3?|pipx|uv) (tool )?(install|add)\b[^&;:\n]*?[ "'`]kvasir\b(?!-server)|["'`\s]kvasir\["""
)
THIS_FILE = "tests/architecture/test_files.py"

# Written in pieces, so that this file does not find itself.
FOREIGN_PATHS = ["/wo" + "rk/", "/ro" + "ot/", "/opt/" + "pypi", "/ho" + "me/"]
REGISTRY_HOSTS = ["pypi" + ".org", "pythonhosted" + ".org", "registry.npmjs" + ".org", "deb.debian" + ".org"]


@pytest.mark.parametrize("word", [*FOREIGN_PATHS, *REGISTRY_HOSTS])
def test_no_file_names_a_path_of_one_machine_or_a_package_registry(word: str) -> None:
    named_in = [path for path in project_files() if word in text_of(path)]
    assert not named_in


def test_no_text_installs_the_project_of_another_author_from_a_package_registry() -> None:
    found = [path for path in project_files() if path != THIS_FILE and INSTALL_OF_ANOTHER.search(text_of(path))]
    assert not found, "`kvasir` on PyPI is another project; name `make venv-dev` or `pip install '.[train]'` instead"


def test_every_package_marker_is_empty() -> None:
    public = "kvasir_client/__init__.py"  # users import from it
    markers = [path for path in project_files() if path.endswith("__init__.py") and path != public]
    filled = [path for path in markers if text_of(path).strip()]
    assert not filled, "no re-exports: import a name from the module that defines it"


def test_no_module_name_is_an_empty_word() -> None:
    assert not [path for path in project_files() if path.endswith(".py") and EMPTY_WORD.search(path)]
