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
    blocks_of,
    compare,
    percentile,
    resampled_percentiles,
    resampled_rates,
)
from loadtest.results.objective import Objective
from loadtest.results.run_folder import RunFolder
from loadtest.results.totals import totals_of
from tests.loadtest.results.test_records import ANSWERED
from tests.loadtest.results.test_run_folder import INFO, STAGE
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


def test_a_run_that_is_worse_than_the_base_is_better_as_the_base(runs: tuple[RunFolder, RunFolder, RunFolder]) -> None:
    goodput = _change(compare([runs[2], runs[0]]).runs[1], "goodput, best stage", None)
    assert goodput.is_better is True


def test_a_knee_beside_none_is_a_difference(runs: tuple[RunFolder, RunFolder, RunFolder], tmp_path: Path) -> None:
    hopeless = write_run(tmp_path, replace(SERVER, slowness=20.0), label="hopeless")
    knee = _change(compare([runs[0], hopeless]).runs[1], "highest load that meets the objective", None)
    assert (knee.base, knee.other, knee.ratio) == (20.0, None, None)
    assert knee.is_better is False


def test_too_few_requests_have_a_ratio_and_no_interval(tmp_path: Path) -> None:
    short = SimulatedServer(loads=(Load("short", rate=5.0, seconds=5.0),))
    one, other = write_run(tmp_path / "one", short), write_run(tmp_path / "other", replace(short, slowness=9.0))
    for change in compare([one, other]).runs[1].changes:
        assert (change.low, change.high, change.is_different) == (None, None, False)


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


def test_warnings_name_other_rates_and_late_generators(
    runs: tuple[RunFolder, RunFolder, RunFolder], tmp_path: Path
) -> None:
    loads = (replace(SERVER.loads[0], rate=10.0), SERVER.loads[1])
    late = write_run(tmp_path, replace(SERVER, loads=loads, generator_lag_seconds=0.02), label="late")
    warnings = compare([runs[0], late]).warnings
    invalid = [warning for warning in warnings if "invalid" in warning]
    assert [re.sub(r"\d+\.\d ms", "many ms", warning) for warning in invalid] == [
        "late is invalid: the generator was late in stage half (p99 of its lag many ms).",
        "late is invalid: the generator was late in stage twice the knee (p99 of its lag many ms).",
    ]
    assert "late had other rates than base in half; these loads are not equal." in warnings


def test_a_warning_on_estimated_tokens_counts_answers_but_not_rejections(tmp_path: Path) -> None:
    says = write_run(tmp_path / "says", replace(SERVER, max_waiting=2), label="says")
    says_not = write_run(tmp_path / "not", replace(SERVER, reports_tokens=False), seed=2, label="not")
    comparison = compare([says, says_not])
    assert comparison.runs[0].totals.stages[1].all.outcomes["rejected"]
    estimated = [warning for warning in comparison.warnings if "estimated" in warning]
    assert estimated == ["Source tokens of not are estimated from words; its objectives depend on them."]


def test_one_run_is_no_comparison(runs: tuple[RunFolder, RunFolder, RunFolder]) -> None:
    with pytest.raises(ValueError, match="at least 2 runs"):
        compare(runs[:1])


def test_a_comparison_is_three_files(written: Path) -> None:
    page = (written / "comparison.html").read_text(encoding="utf-8")
    assert page.count("<figure") == 5  # three over all runs, one for each that is not the base
    assert 'class="worse"' in page
    text = (written / "comparison.md").read_text(encoding="utf-8")
    assert "| base | " in text
    found = json.loads((written / "comparison.json").read_text(encoding="utf-8"))
    assert [run["name"] for run in found["runs"]] == ["base", "again", "peer"]


def test_a_resampled_percentile_is_that_of_the_requests_drawn() -> None:
    values = np.array([10.0, 20.0, 30.0, 40.0])
    durations = Durations(values, np.array([0, 1, 0, 1]))
    draws = np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    found = resampled_percentiles(durations, draws, 50)
    assert found[:3].tolist() == [20.0, 10.0, 20.0]
    assert np.isnan(found[3])
    assert percentile(durations, 50) == 20.0


def test_blocks_hold_every_request_of_the_window_once() -> None:
    records = [
        replace(ANSWERED, scheduled=1.0 + n / 20, sent=1.0 + n / 20, finished=1.1 + n / 20) for n in range(-10, 220)
    ]
    blocks = blocks_of(STAGE, records, Objective())
    assert blocks.num_blocks == 10
    assert blocks.within.tolist() == blocks.counted.tolist() == [20.0] * 10
    assert resampled_rates(blocks.within, np.ones((1, 10)), blocks.window_seconds).tolist() == [20.0]


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
