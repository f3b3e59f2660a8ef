"""A scenario's requests in the protocols of the other servers."""

import pytest

from benchmarks.servers.loads import at_rate, ramp, requests_for, search
from loadtest.workload.requests import request_sequence
from loadtest.workload.scenario import Scenario, ScenarioInvalid, load_scenario


def test_all_protocols_send_the_same_texts() -> None:
    scenario = load_scenario("knee")
    native, theirs = (
        request_sequence(at_rate(requests_for(scenario, protocol_name, 1), "load", 5, 10, 2), 1, "load")
        for protocol_name in ("native", "libretranslate")
    )
    for number in range(20):
        assert native(number).texts == theirs(number).texts
        assert (native(number).protocol, native(number).beam_size) == ("native", 1)
        assert (theirs(number).protocol, theirs(number).beam_size) == ("libretranslate", None)


def test_the_loads_are_valid_scenarios() -> None:
    requests = requests_for(load_scenario("knee"), "native", None)
    for made in (search(requests, 8, 1.5, 3, 15), ramp(requests, 1, 9, 20), at_rate(requests, "load", 5, 10, 2)):
        assert Scenario.model_validate_json(made.model_dump_json()) == made
        assert made.kinds == requests.kinds


def test_kinds_that_other_servers_do_not_support_are_rejected() -> None:
    with pytest.raises(ScenarioInvalid, match="do not support the protocol stream"):
        requests_for(load_scenario("streaming"), "native", None)
    with pytest.raises(ScenarioInvalid, match="LibreTranslate has one beam size"):
        requests_for(load_scenario("mixed"), "libretranslate", None)
