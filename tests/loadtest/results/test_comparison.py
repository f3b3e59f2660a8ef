import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import JsonValue, TypeAdapter

from loadtest.report.write import write_comparison
from loadtest.results.comparability import warnings_of, with_known_lengths
from loadtest.results.comparison import (
    Change,
    ComparedRun,
    Comparison,
    Durations,
    compare,
    resampled_percentiles,
)
from loadtest.results.run_folder import RunFolder
from loadtest.results.totals import totals_of
from tests.loadtest.results.test_records import ANSWERED
from tests.loadtest.results.test_run_folder import INFO
from tests.loadtest.simulated_run import Load, SimulatedServer, write_run

SERVER = SimulatedServer(
    loads=(Load("half", rate=20.0, seconds=22.0), Load("twice the knee", rate=80.0, seconds=22.0)), has_metrics=False
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, RunFolder, RunFolder]:
    path = tmp_path_factory.mktemp("runs")
    peer = replace(SERVER, slowness=2.0, reports_tokens=False, reports_phases=False)
    return (
        write_run(path / "base", SERVER, label="base"),
        write_run(path / "again", SERVER, seed=2, label="again"),
        write_run(path / "peer", peer, label="peer"),
    )


@pytest.fixture(scope="module")
def written(runs: tuple[RunFolder, RunFolder, RunFolder], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("comparison") / "made"
    write_comparison(runs, folder)
    return folder


@pytest.fixture(scope="module")
def compared(written: Path) -> Comparison:
    return TypeAdapter(Comparison).validate_json((written / "comparison.json").read_bytes())


def _change(run: ComparedRun, figure: str, stage: str | None) -> Change:
    return next(change for change in run.changes if (change.figure, change.stage) == (figure, stage))


def test_a_run_does_not_differ_from_itself(runs: tuple[RunFolder, RunFolder, RunFolder]) -> None:
    comparison = compare([runs[0], runs[0]])
    assert [run.name for run in comparison.runs] == ["base (1)", "base (2)"]
    assert all(change.ratio in (1.0, None) for change in comparison.runs[1].changes)
    assert not any(change.is_different for change in comparison.runs[1].changes)


def test_the_same_server_with_other_arrivals_differs_by_noise_only(compared: Comparison) -> None:
    assert compared.runs[1].name == "again"
    assert not any(change.is_different for change in compared.runs[1].changes)
    # A request that the base rejected and the peer answered has no reported length.
    estimated, seed = compared.warnings
    assert re.fullmatch(r"Source tokens of peer are estimated from words in \d+\.\d% of its answers; its .*", estimated)
    assert seed == "again was run with another seed than base: 2, not 1."


def test_a_server_of_half_the_speed_is_marked_worse_with_the_ratio(compared: Comparison) -> None:
    goodput = _change(compared.runs[2], "goodput, best stage", None)
    assert goodput.is_better is False
    assert goodput.ratio is not None
    assert goodput.low is not None
    assert goodput.high is not None
    assert goodput.low < goodput.ratio < goodput.high < 1
    median = _change(compared.runs[2], "p50", "half")
    assert median.is_better is False
    assert median.ratio is not None
    assert median.ratio > 1.8


def test_token_counts_of_one_run_replace_estimates_of_others() -> None:
    known = [replace(ANSWERED, number=1, source_tokens=70, source_tokens_estimated=False)]
    estimated = [replace(ANSWERED, number=n, source_tokens=60, source_tokens_estimated=True) for n in (1, 2)]
    first, second = with_known_lengths([INFO, INFO], [known, estimated])
    assert first == known
    assert [(r.source_tokens, r.source_tokens_estimated) for r in second] == [(70, False), (60, True)]
    other_seed = with_known_lengths([INFO, replace(INFO, seed=9)], [known, estimated])
    assert other_seed[1] == estimated


SCENARIO: dict[str, JsonValue] = {
    "name": "steady",
    "workload": {"lengths": "tatoeba", "repeats": 0.0},
    "kinds": [{"name": "sentence", "weight": 1.0, "protocol": "native"}, {"name": "list", "weight": 1.0}],
    "stages": [{"name": "steady", "seconds": 11.0, "kinds": []}],
    "search": {"seconds": 20.0, "factor": 2.0},
}
SENTENCE: dict[str, JsonValue] = {"name": "sentence", "weight": 1.0, "protocol": "native"}
OTHER_TEXTS: list[tuple[dict[str, JsonValue], str]] = [
    ({"workload": {"lengths": "tatoeba", "repeats": 0.5}}, "another workload (repeats 0.5, not 0.0)"),
    ({"kinds": [SENTENCE, {"name": "list", "weight": 3.0}]}, "another kind list (weight 3.0, not 1.0)"),
    ({"kinds": [SENTENCE]}, "fewer kinds of request (list)"),
    (
        {"stages": [{"name": "steady", "seconds": 11.0, "kinds": ["list"]}]},
        'another stage steady (kinds ["list"], not [])',
    ),
]
SAME_TEXTS: list[tuple[dict[str, JsonValue], str]] = [
    (
        {"kinds": [SENTENCE | {"protocol": "deepl"}, {"name": "list", "weight": 1.0}]},
        'another kind sentence (protocol "deepl", not "native")',
    ),
    ({"stages": [{"name": "steady", "seconds": 30.0, "kinds": []}]}, "another stage steady (seconds 30.0, not 11.0)"),
    ({"search": {"seconds": 10.0, "factor": 2.0}}, "other steps of the search (seconds 10.0, not 20.0)"),
]


@pytest.mark.parametrize(
    ("changed", "warning", "is_lent"),
    [*((*case, False) for case in OTHER_TEXTS), *((*case, True) for case in SAME_TEXTS)],
)
def test_warnings_name_different_requests_and_only_equal_texts_share_token_counts(
    changed: dict[str, JsonValue], warning: str, is_lent: bool
) -> None:
    infos = [replace(INFO, scenario=SCENARIO), replace(INFO, scenario=SCENARIO | changed)]
    known = [replace(ANSWERED, stage="steady", source_tokens=70, source_tokens_estimated=False)]
    estimated = [replace(known[0], source_tokens=60, source_tokens_estimated=True)]
    assert with_known_lengths(infos, [known, estimated]) == [known, known if is_lent else estimated]
    totals = [totals_of(info, known, (), None) for info in infos]
    assert list(warnings_of(["base", "other"], infos, totals)) == [f"other was run with {warning} than base."]


def test_a_comparison_is_three_files(written: Path) -> None:
    page = (written / "comparison.html").read_text(encoding="utf-8")
    assert page.count("<figure") == 5  # three over all runs, one for each that is not the base
    assert 'class="worse"' in page
    text = (written / "comparison.md").read_text(encoding="utf-8")
    assert "| base | " in text
    found = json.loads((written / "comparison.json").read_text(encoding="utf-8"))
    assert [run["name"] for run in found["runs"]] == ["base", "again", "peer"]


def test_intervals_hold_what_repeated_runs_give() -> None:
    # Latencies of a server without a queue: blocks are independent, so the interval must nearly always hold the truth.
    random = np.random.default_rng(5)
    held = 0
    for _ in range(60):
        values = np.sort(random.exponential(100.0, 400))
        durations = Durations(values, random.integers(0, 20, 400))
        draws = random.multinomial(20, np.full(20, 1 / 20), 500).astype(np.float64)
        low, high = np.quantile(resampled_percentiles(durations, draws, 50), [0.005, 0.995])
        held += bool(low <= 100.0 * np.log(2) <= high)
    assert held >= 55
