"""Loads of the comparison with a scenario's requests: closed loops, a ramp, a search for the knee, a constant rate."""

from benchmarks.servers.server_kinds import Protocol
from loadtest.workload.scenario import Kind, Scenario, ScenarioInvalid, Search, Stage

# Protocols of all servers; a kind of request in any other protocol cannot be compared.
_COMPARABLE = ("native", "libretranslate")


def requests_for(scenario: Scenario, protocol: Protocol, beam_size: int | None) -> Scenario:
    """Return a scenario with the same kinds of request in a protocol, all with the beam size if given.

    Its stages are replaced later. Raises `ScenarioInvalid` if the protocol cannot express a kind.
    """
    kinds = tuple(_kind(kind, protocol, beam_size) for kind in scenario.kinds)
    # A scenario needs stages or a search; the search is a placeholder.
    return scenario.model_copy(update={"kinds": kinds, "search": Search(), "stages": ()})


def _kind(kind: Kind, protocol: Protocol, beam_size: int | None) -> Kind:
    if kind.protocol not in _COMPARABLE:
        raise ScenarioInvalid(f"the other servers do not support the protocol {kind.protocol} of kind {kind.name}")
    requested = beam_size or kind.beam_size
    if protocol == "libretranslate":
        if beam_size is None and kind.beam_size is not None:
            raise ScenarioInvalid(
                f"LibreTranslate has one beam size, and kind {kind.name} sets its own; pass --beam-size"
            )
        requested = None  # the server was started with it
    return kind.model_copy(update={"protocol": protocol, "beam_size": requested})


def closed_loop(requests: Scenario, users: int, seconds: float, warm_up_seconds: float) -> Scenario:
    """Return a closed loop of that many users: it measures capacity, whatever the latency."""
    return _of_one(requests, Stage(name="closed loop", users=users, seconds=seconds, warm_up_seconds=warm_up_seconds))


def ramp(requests: Scenario, lowest: float, highest: float, seconds: float) -> Scenario:
    """Return a ramp from the lowest to the highest rate."""
    return _of_one(requests, Stage(name="ramp", rate=lowest, ramp_to=highest, seconds=seconds))


def at_rate(requests: Scenario, name: str, rate: float, seconds: float, warm_up_seconds: float) -> Scenario:
    """Return a stage with a constant rate."""
    return _of_one(requests, Stage(name=name, rate=rate, seconds=seconds, warm_up_seconds=warm_up_seconds))


def search(requests: Scenario, start_rate: float, factor: float, bisections: int, seconds: float) -> Scenario:
    """Return a search for the knee."""
    settings = Search(
        start_rate=start_rate, factor=factor, bisections=bisections, seconds=seconds, warm_up_seconds=seconds / 5
    )
    return requests.model_copy(update={"search": settings, "stages": ()})


def _of_one(requests: Scenario, stage: Stage) -> Scenario:
    return requests.model_copy(update={"search": None, "stages": (stage,)})
