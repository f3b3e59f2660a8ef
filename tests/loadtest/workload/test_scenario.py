import tomllib
from pathlib import Path

import pytest

from loadtest.workload.requests import request_sequence
from loadtest.workload.scenario import FOLDER, Scenario, ScenarioInvalid, load_scenario, scenario_names

NAMES = {
    *("steady", "knee", "spike", "soak", "overload", "mixed", "streaming", "impatient", "batch", "libretranslate"),
    *("deepl", "cache-friendly", "cache-hostile", "paragraphs", "long-streams", "closed", "smoke"),
}

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


def test_every_promised_scenario_is_there() -> None:
    assert set(scenario_names()) == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_named_scenario_can_be_run(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.name == name
    assert not scenario.needs_knee or scenario.search, "rates need the knee, and there is no search"
    runnable = scenario.with_rates(100.0)
    for stage in runnable.stages:
        assert stage.is_closed or min(stage.rates()) > 0
        assert request_sequence(runnable, 1, stage.name)(0).texts


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_scenario_survives_json(name: str) -> None:
    scenario = load_scenario(name)
    assert Scenario.model_validate_json(scenario.model_dump_json()) == scenario


def test_smoke_is_over_within_a_minute_and_gentle() -> None:
    smoke = load_scenario("smoke")
    assert sum(stage.seconds for stage in smoke.stages) <= 30  # and as much for draining and comparing
    assert all(stage.users == 2 if stage.is_closed else stage.rates() == (5, 5) for stage in smoke.stages)
    assert {kind.protocol for kind in smoke.kinds} == {"native", "stream", "libretranslate", "deepl"}


def test_overload_is_twice_the_knee() -> None:
    rates = {stage.name: stage.rates() for stage in load_scenario("overload").with_rates(50).stages}
    assert rates == {"knee": (50, 50), "overload": (100, 100), "after": (25, 25)}


def test_as_many_short_sentences_are_sent_beside_paragraphs_as_alone() -> None:
    scenario = load_scenario("paragraphs").with_rates(100)
    alone, beside = scenario.stages
    assert [kind.name for kind in scenario.kinds_of("alone")] == ["short"]
    assert [kind.name for kind in scenario.kinds_of("step 1 of the search")] == ["short"]
    kinds = scenario.kinds_of("beside")
    short_share = kinds[0].weight / sum(kind.weight for kind in kinds)
    assert beside.rates()[0] * short_share == pytest.approx(alone.rates()[0])


def test_one_in_ten_is_impatient() -> None:
    patient, impatient = load_scenario("impatient").kinds
    assert (patient.hang_up_after, impatient.hang_up_after) == (None, (0.02, 0.3))
    assert impatient.weight / (patient.weight + impatient.weight) == pytest.approx(0.1)


def test_shares_of_the_knee_become_numbers_and_numbers_stay() -> None:
    scenario = _scenario(PLAIN + '[[stages]]\nname = "up"\nrate = "0.5 knee"\nramp_to = "2 knee"\nseconds = 10\n')
    assert scenario.needs_knee
    with pytest.raises(ScenarioInvalid, match=r"0\.5 knee.*--knee"):
        scenario.stages[1].rates()
    known = scenario.with_rates(30.0)
    assert not known.needs_knee
    assert [stage.rates() for stage in known.stages] == [(10, 10), (15, 60)]


def test_a_rate_and_seconds_are_overridden_and_the_warm_up_keeps_its_share() -> None:
    changed = _scenario(PLAIN).with_overrides(rate=3, seconds=8, corpus="mine.txt")
    assert changed.stages[0].rates() == (3, 3)
    assert (changed.stages[0].seconds, changed.stages[0].warm_up_seconds) == (8, 2)
    assert changed.workload.corpus == "mine.txt"


def test_only_scenarios_that_need_the_knee_search_for_it() -> None:
    steady = load_scenario("steady")
    assert steady.needs_search
    assert not steady.with_overrides(rate=5).needs_search
    assert not steady.with_rates(30).needs_search
    assert load_scenario("knee").needs_search
    assert not _scenario(PLAIN).needs_search


def test_one_rate_for_stages_with_several_is_rejected() -> None:
    with pytest.raises(ScenarioInvalid, match=r"one rate.*pass --knee"):
        load_scenario("overload").with_overrides(rate=10)


def test_a_closed_loop_has_no_rate() -> None:
    with pytest.raises(ScenarioInvalid, match="closed loop of 1 users"):
        load_scenario("closed").stages[0].rates()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rate = 10", "", "either `rate` or `users`"),
        ("rate = 10", "rate = 10\nusers = 2", "either `rate` or `users`"),
        ("rate = 10", "users = 2\nramp_to = 5", "need a `rate`"),
        ("rate = 10", "rate = -1", "greater than 0"),
        ("rate = 10", 'rate = "half the knee"', "pattern"),
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
        ("[[stages]]", "[other]", "other: Extra inputs"),
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


def test_a_scenario_without_stages_and_search_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "idle.toml"
    path.write_text(PLAIN.partition("[[stages]]")[0], encoding="utf-8")
    with pytest.raises(ScenarioInvalid, match="must have `stages` or a `search`"):
        load_scenario(path)


def test_an_error_for_an_unknown_scenario_lists_the_available_ones() -> None:
    with pytest.raises(ScenarioInvalid, match=r"unknown scenario stedy; available: batch, .*steady"):
        load_scenario("stedy")
    with pytest.raises(ScenarioInvalid, match=r"missing\.toml"):
        load_scenario("missing.toml")


def test_a_scenario_is_called_like_its_file() -> None:
    assert all(load_scenario(path).name == path.stem for path in FOLDER.glob("*.toml"))
