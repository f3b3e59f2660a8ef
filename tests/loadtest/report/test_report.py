import json
import re
from dataclasses import fields, is_dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args, get_type_hints

import html5lib
import pytest

from loadtest.report.write import Report, write_report
from loadtest.results.comparison import Comparison
from loadtest.results.run_folder import RunFolder
from loadtest.results.thresholds import Thresholds
from tests.loadtest.simulated_run import Load, SimulatedServer, different_answers, write_run

ROOT = Path(__file__).resolve().parents[3]
SMALL = (Load("half", rate=20.0, seconds=8.0), Load("over & <above>", rate=80.0, seconds=8.0), Load("users", users=8))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    path = tmp_path_factory.mktemp("run")
    run = write_run(path, SimulatedServer(loads=SMALL), label="a <b>run</b>", answer_check=different_answers())
    write_report(run, Thresholds(min_goodput=1000))
    return run


def _html(folder: RunFolder) -> str:
    return (folder.path / "report.html").read_text(encoding="utf-8")


def test_a_report_is_four_files(folder: RunFolder) -> None:
    made = {"totals.json", "report.json", "report.md", "report.html"}
    assert made <= {path.name for path in folder.path.iterdir()}


def test_the_page_loads_and_runs_nothing(folder: RunFolder) -> None:
    page = _html(folder)
    assert not re.search(r"<script|<link|<img|@import|\bsrc=|javascript:", page)
    # References are within the page; the rest are XML namespaces, which browsers do not fetch.
    assert all(target.startswith("#") for target in re.findall(r'href="([^"]*)"', page))
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", page))


def test_the_page_is_valid_html_and_no_id_is_there_twice(folder: RunFolder) -> None:
    page = _html(folder)
    parser = html5lib.HTMLParser(strict=True)
    parser.parse(page)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"""(?:url\(|href=")#([^")]+)""", page)) <= set(ids)


def test_texts_from_outside_are_escaped(folder: RunFolder) -> None:
    page, text = _html(folder), (folder.path / "report.md").read_text(encoding="utf-8")
    for foreign in ("<b>run</b>", "<above>", "<b>tea</b>"):
        assert foreign not in page
        assert foreign not in text.replace("# Load test: a <b>run</b>", "")
    seen = "".join(html5lib.parse(page, namespaceHTMLElements=False).itertext())
    assert "over & <above>" in seen
    assert "A <b>tea</b> & a biscuit." in seen


def test_report_json_has_what_the_page_shows(folder: RunFolder) -> None:
    report = json.loads((folder.path / "report.json").read_text(encoding="utf-8"))
    assert report["totals"] == json.loads((folder.path / "totals.json").read_text(encoding="utf-8"))
    assert report["verdict"]["exit_code"] == 2
    assert report["thresholds"]["min_goodput"] == 1000
    assert report["guard"]["different"][0]["number"] == 17


def test_every_key_of_the_json_files_is_documented() -> None:
    documented = set(re.findall(r"`([a-z0-9_]+)`", (ROOT / "docs/load-test-reports.md").read_text(encoding="utf-8")))
    keys = _keys(Report) | _keys(Comparison)
    assert not keys - documented


@pytest.mark.parametrize(
    "server",
    [
        SimulatedServer(loads=()),
        SimulatedServer(loads=(Load("nothing", rate=0.001, seconds=4.0),)),
        SimulatedServer(loads=(Load("refused", rate=20.0, seconds=5.0),), max_waiting=0),
        SimulatedServer(loads=(Load("one", rate=0.3, seconds=6.0),), has_metrics=False, reports_phases=False),
        SimulatedServer(loads=(Load("users", users=4, seconds=4.0),), reports_tokens=False, impatient_share=0.5),
    ],
    ids=["no stage", "empty stage", "all rejected", "one record", "closed loop only"],
)
def test_a_run_in_which_little_happened_has_a_report_too(server: SimulatedServer, tmp_path: Path) -> None:
    run = write_run(tmp_path, server)
    write_report(run)
    HTMLParser().feed(_html(run))
    assert "Exit code" in (tmp_path / "report.md").read_text(encoding="utf-8")


def _keys(kind: object) -> set[str]:
    """Return the fields of a dataclass and of every dataclass in it."""
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        return {one.name for one in fields(kind)}.union(*(_keys(hints[one.name]) for one in fields(kind)))
    return set().union(*(_keys(part) for part in get_args(kind)))
