import tomllib
from pathlib import Path

import pytest

from loadtest.workload.requests import request_sequence
from loadtest.workload.scenario import Scenario, ScenarioInvalid, load_scenario, scenario_names

PLAIN = """
name = "plain"
description = "one stage"
[[kinds]]
name = "sentence"
[[stages]]
name = "only"
rate = 10
seconds = 20
warm_up_seconds = 5
"""


def _scenario(text: str) -> Scenario:
    return Scenario.model_validate(tomllib.loads(text))


@pytest.mark.parametrize("name", scenario_names())
def test_a_named_scenario_can_be_run(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.name == name
    assert not scenario.needs_knee or scenario.search, "rates need the knee, and there is no search"
    runnable = scenario.with_rates(100.0)
    for stage in runnable.stages:
        assert stage.is_closed or min(stage.rates()) > 0
        assert request_sequence(runnable, 1, stage.name)(0).texts


def test_shares_of_the_knee_become_numbers_and_numbers_stay() -> None:
    scenario = _scenario(PLAIN + '[[stages]]\nname = "up"\nrate = "0.5 knee"\nramp_to = "2 knee"\nseconds = 10\n')
    assert scenario.needs_knee
    with pytest.raises(ScenarioInvalid, match=r"0\.5 knee.*--knee"):
        scenario.stages[1].rates()
    known = scenario.with_rates(30.0)
    assert not known.needs_knee
    assert [stage.rates() for stage in known.stages] == [(10, 10), (15, 60)]


def test_only_scenarios_that_need_the_knee_search_for_it() -> None:
    steady = load_scenario("steady")
    assert steady.needs_search
    assert not steady.with_overrides(rate=5).needs_search
    assert not steady.with_rates(30).needs_search
    assert load_scenario("knee").needs_search
    assert not _scenario(PLAIN).needs_search


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rate = 10", "", "either `rate` or `users`"),
        ("rate = 10", "rate = 10\nusers = 2", "either `rate` or `users`"),
        ("rate = 10", "users = 2\nramp_to = 5", "need a `rate`"),
        ("warm_up_seconds = 5", "warm_up_seconds = 20", "must be less than 20. Given: 20"),
        ("warm_up_seconds = 5", "warmup = 5", "stages.0.warmup: Extra inputs"),
        ("warm_up_seconds = 5", 'kinds = ["other"]', "unknown kinds other; available: sentence"),
        (
            'name = "sentence"',
            'name = "sentence"\nlist_texts = [5, 2]',
            "with a lowest of at least 2. Given: [5, 2]",
        ),
        ('name = "sentence"', 'name = "sentence"\nhang_up_after = [-1, 2]', "`hang_up_after` must be"),
        (
            'name = "sentence"',
            'name = "sentence"\nprotocol = "libretranslate"\nbeam_size = 2',
            "cannot be combined with the libretranslate protocol",
        ),
        ('name = "sentence"', 'name = "sentence"\nprotocol = "deepl"\nbeam_size = 2', "latency_optimized"),
        (
            'name = "sentence"',
            'name = "sentence"\nprotocol = "deepl"\noptions = { top_k = 3 }',
            "`options` need the native or stream protocol. Given: deepl",
        ),
        ('name = "sentence"', 'name = "sentence"\nlengths = "poems"', "unknown lengths poems"),
        (
            'name = "sentence"',
            'name = "sentence"\n[[kinds]]\nname = "sentence"',
            "names of kinds must be unique. Given twice: sentence",
        ),
        (
            'name = "only"',
            'name = "only"\nseconds = 1\nrate = 1\n[[stages]]\nname = "only"',
            "names of stages must be unique",
        ),
        ("[[stages]]", "[[stages", "plain.toml: "),
    ],
)
def test_a_mistake_is_reported_with_its_field(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in PLAIN
    path = tmp_path / "plain.toml"
    path.write_text(PLAIN.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ScenarioInvalid, match=r"plain\.toml") as refused:
        load_scenario(path)
    assert message in str(refused.value)


def test_an_error_for_an_unknown_scenario_lists_the_available_ones() -> None:
    with pytest.raises(ScenarioInvalid, match=r"unknown scenario stedy; available: batch, .*steady"):
        load_scenario("stedy")
    with pytest.raises(ScenarioInvalid, match=r"missing\.toml"):
        load_scenario("missing.toml")
