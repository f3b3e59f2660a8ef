"""The site of `make docs`: it builds without a warning, and its pages request nothing from other hosts."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from tests.architecture.project_files import ROOT

ATTRIBUTES = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
# The theme loads the program that draws these from a content delivery network.
LOADS_A_LIBRARY = "pre.mermaid"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the built site. Links to missing pages and anchors are errors."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def test_every_page_is_built_and_requests_nothing_from_other_hosts(site: Path) -> None:
    pages = {str(path.relative_to(site)): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert pages.keys() >= {"index.html", "http-api/index.html", "decisions/engine/index.html"}
    assert not {page: requests for page, text in pages.items() if (requests := _foreign_requests(text))}


def test_no_style_sheet_requests_anything_from_other_hosts(site: Path) -> None:
    sheets = {path.name: path.read_text(encoding="utf-8") for path in site.rglob("*.css")}
    assert sheets
    assert not {name: urls for name, text in sheets.items() if (urls := re.findall(r"url\(['\"]?(?:https?:)?//", text))}


def _foreign_requests(html: str) -> list[str]:
    tree = LexborHTMLParser(html)
    urls = [node.attributes.get(name) or "" for tag, name in ATTRIBUTES.items() for node in tree.css(tag)]
    found = [url for url in urls if re.match(r"(https?:)?//", url)]
    return found + [LOADS_A_LIBRARY] * bool(tree.css(LOADS_A_LIBRARY))
