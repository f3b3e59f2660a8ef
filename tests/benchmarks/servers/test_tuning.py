"""A scenario's requests and the loads of a comparison."""

import pytest

from benchmarks.servers.tuning import at_rate, ramp, requests_for, search
from loadtest.workload.scenario import Scenario, ScenarioInvalid, load_scenario


def test_the_loads_are_valid_scenarios_with_the_same_requests() -> None:
    requests = requests_for(load_scenario("knee"), 1)
    assert {kind.beam_size for kind in requests.kinds} == {1}
    for made in (search(requests, 8, 1.5, 3, 15), ramp(requests, 1, 9, 20), at_rate(requests, "load", 5, 10, 2)):
        assert Scenario.model_validate_json(made.model_dump_json()) == made
        assert made.kinds == requests.kinds


def test_kinds_that_other_servers_do_not_support_are_rejected() -> None:
    with pytest.raises(ScenarioInvalid, match="do not support the protocol stream"):
        requests_for(load_scenario("streaming"), None)
