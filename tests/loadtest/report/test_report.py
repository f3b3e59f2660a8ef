import json
import re
from dataclasses import fields, is_dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args, get_type_hints

import html5lib
import pytest
from pydantic import JsonValue

from loadtest.report.drawing import PAGE_COLOURS
from loadtest.report.headline import headline_of
from loadtest.report.tables import milliseconds, percent, rate
from loadtest.report.write import Report, write_report
from loadtest.results.comparison import Comparison
from loadtest.results.run_folder import RunFolder
from loadtest.results.thresholds import Thresholds, verdict_of
from loadtest.results.totals import totals_of
from tests.loadtest.results.test_run_folder import INFO
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


def test_the_page_has_every_plot_with_a_sentence_on_how_to_read_it(folder: RunFolder) -> None:
    page = html5lib.parse(_html(folder), namespaceHTMLElements=False)
    titles = ["".join(title.itertext()) for title in page.iter("h3")]
    assert titles == [
        "Latency against offered load",
        "Throughput and goodput against offered load",
        "Outcomes of the requests",
        "Distribution of latency",
        "Latency against source length, half (20/s)",
        "Kinds of request, half (20/s)",
        "Streams: the first token, and the gaps after it",
        "Phases of a request",
        "The run over time",
    ]
    for figure in page.iter("figure"):
        assert len(list(figure.iter("{http://www.w3.org/2000/svg}svg"))) + len(list(figure.iter("svg"))) == 1
        captions = ["".join(caption.itertext()).strip() for caption in figure.iter("figcaption")]
        assert [caption[-1:] for caption in captions] == ["."]


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


def test_plots_take_every_colour_from_the_page(folder: RunFolder) -> None:
    page = _html(folder)
    drawings = "".join(re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL))
    fixed = set(re.findall(r"#[0-9a-f]{6}\b", drawings))
    assert not fixed, "a colour that does not change between light and dark"
    for variable in PAGE_COLOURS.values():
        assert f"{variable}: light-dark(" in page


def test_texts_from_outside_are_escaped(folder: RunFolder) -> None:
    page, text = _html(folder), (folder.path / "report.md").read_text(encoding="utf-8")
    for foreign in ("<b>run</b>", "<above>", "<b>tea</b>"):
        assert foreign not in page
        assert foreign not in text.replace("# Load test: a <b>run</b>", "")
    seen = "".join(html5lib.parse(page, namespaceHTMLElements=False).itertext())
    assert "over & <above>" in seen
    assert "A <b>tea</b> & a biscuit." in seen


def test_the_headline_contains_objective_and_results(folder: RunFolder) -> None:
    text = (folder.path / "report.md").read_text(encoding="utf-8")
    headline = text[: text.index("## Stages")]
    for part in ("Goodput", "Highest load at which 99% meet the objective", "20.0 requests/s", "Validity", "Exit code"):
        assert part in headline
    assert "**2** | 1 of 300 answers under load differ from those of the idle server; goodput is" in headline
    assert "400 ms for each begun 64 source tokens of a request" in headline


def test_the_highest_tried_rate_is_not_called_a_knee(folder: RunFolder, tmp_path: Path) -> None:
    assert "knee 20/s" in _html(folder)
    alone = write_run(tmp_path, SimulatedServer(loads=SMALL[:1]))
    write_report(alone)
    assert "20/s, the highest tried" in _html(alone)
    assert "knee 20/s" not in _html(alone)


def test_a_closed_loop_is_labelled_everywhere(folder: RunFolder) -> None:
    text = (folder.path / "report.md").read_text(encoding="utf-8")
    assert "users (8 users, closed loop)" in text
    assert not re.search(r"^\| users \|", text, flags=re.MULTILINE)


def test_the_same_run_gives_the_same_report(folder: RunFolder) -> None:
    before = {name: (folder.path / name).read_bytes() for name in ("report.html", "report.md", "report.json")}
    write_report(folder, Thresholds(min_goodput=1000))
    assert before == {name: (folder.path / name).read_bytes() for name in before}


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


def test_numbers_have_the_digits_that_mean_something() -> None:
    assert [milliseconds(value) for value in (None, 0.4, 42.345, 1234.5)] == ["–", "0.40", "42.3", "1,234"]
    assert [rate(value) for value in (0.0, 9.876, 98.76, 9876.0)] == ["0.00", "9.88", "98.8", "9,876"]


def test_only_all_is_100_percent_and_only_nothing_is_0() -> None:
    assert [percent(share) for share in (1.0, 0.99999, 0.99, 0.00001, 0.0)] == ["100%", "99.9%", "99%", "0.1%", "0%"]


def _keys(kind: object) -> set[str]:
    """Return the fields of a dataclass and of every dataclass in it."""
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        return {one.name for one in fields(kind)}.union(*(_keys(hints[one.name]) for one in fields(kind)))
    return set().union(*(_keys(part) for part in get_args(kind)))


def test_a_report_begins_with_the_interruption_and_an_open_loop_without_a_window_is_no_closed_one() -> None:
    planned: dict[str, JsonValue] = {"stages": [{"name": "steady"}, {"name": "second"}]}
    totals = totals_of(replace(INFO, scenario=planned, interrupted=True), [], (), None)
    first, *others = headline_of(totals, verdict_of(totals))
    assert (first.name, first.value) == ("Complete", "no")
    assert "interrupted before second" in first.meaning
    [validity] = [line for line in others if line.name == "Validity"]
    assert (validity.value, validity.meaning) == ("unknown", "no request was due in a measured window")
