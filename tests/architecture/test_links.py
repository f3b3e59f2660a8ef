"""Links between documents: every relative link leads to a file, and every anchor to a heading."""

import posixpath
import re
from collections.abc import Callable, Iterable

import pytest

from tests.architecture.project_files import project_files, text_of

DOCUMENTS = tuple(path for path in project_files() if path.endswith(".md"))


@pytest.mark.parametrize("path", DOCUMENTS)
def test_every_relative_link_leads_somewhere(path: str) -> None:
    assert not _broken(path, text_of(path), project_files(), text_of)


@pytest.mark.parametrize("path", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_file_named_in_code_marks_exists(path: str) -> None:
    assert not _missing_files(text_of(path), project_files())


def test_links_of_the_documentation_stay_in_its_folder() -> None:
    pages = [path for path in DOCUMENTS if path.startswith("docs/")]
    assert pages
    assert not {page: links for page in pages if (links := _leaving("docs", page, text_of(page)))}


def _leaving(folder: str, path: str, text: str) -> list[str]:
    """Return relative links to files outside `folder`, which a site made of the folder lacks."""
    found = {target: posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) for target in _links(text)}
    return [target for target, file in found.items() if not file.startswith(f"{folder}/")]


def _links(text: str) -> list[str]:
    targets = re.findall(r"\]\(([^)\s]+)\)", _without_code(text))
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def _missing_files(text: str, files: Iterable[str]) -> list[str]:
    """Return paths in code marks, below a folder of the project, that lead to no file or folder."""
    files = set(files)
    folders = {parent for file in files for parent in _parents(file)}
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    named = [name.rstrip("/") for name in re.findall(r"`([\w.]+/[\w./-]*)`", prose)]
    return [name for name in named if name.split("/")[0] in folders and name not in files | folders]


def _broken(path: str, text: str, files: Iterable[str], read: Callable[[str], str]) -> list[str]:
    files = set(files)
    folders = {parent for file in files for parent in _parents(file)}
    broken = []
    for target in _links(text):
        name, _, anchor = target.partition("#")
        found = posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) if name else path
        if found not in files | folders or (anchor and anchor not in _anchors(text if not name else read(found))):
            broken.append(target)
    return broken


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _without_code(text: str) -> str:
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)


def _parents(file: str) -> list[str]:
    parts = file.split("/")[:-1]
    return ["/".join(parts[: number + 1]) for number in range(len(parts))]
