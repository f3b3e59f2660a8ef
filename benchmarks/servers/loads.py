"""A scenario's requests as the comparison sends them: in closed loops, up a ramp, in search of a knee, at a rate."""

from benchmarks.servers.server_kinds import Protocol
from loadtest.workload.scenario import Kind, Scenario, ScenarioInvalid, Search, Stage

# What peers speak of each other's: a kind of request in any other protocol cannot be compared.
_COMPARABLE = ("native", "libretranslate")


def requests_for(scenario: Scenario, protocol: Protocol, beam_size: int | None) -> Scenario:
    """The scenario's kinds of request in a protocol, all with a beam size if there is one; without what it does when.

    Raises `ScenarioInvalid` where the protocol cannot say what a kind asks for.
    """
    kinds = tuple(_kind(kind, protocol, beam_size) for kind in scenario.kinds)
    # A placeholder: a scenario does something, and what this one does is decided by whoever asks.
    return scenario.model_copy(update={"kinds": kinds, "search": Search(), "stages": ()})


def _kind(kind: Kind, protocol: Protocol, beam_size: int | None) -> Kind:
    if kind.protocol not in _COMPARABLE:
        raise ScenarioInvalid(f"kind {kind.name} speaks {kind.protocol}, and the peers do not")
    asked = beam_size or kind.beam_size
    if protocol == "libretranslate":
        if beam_size is None and kind.beam_size is not None:
            raise ScenarioInvalid(
                f"kind {kind.name} asks for a beam size, and LibreTranslate has one for all: --beam-size"
            )
        asked = None  # that server was started with it
    return kind.model_copy(update={"protocol": protocol, "beam_size": asked})


def closed_loop(requests: Scenario, users: int, seconds: float, warm_up_seconds: float) -> Scenario:
    """So many users who always wait for an answer: what a server can do, whatever the latency."""
    return _of_one(requests, Stage(name="closed loop", users=users, seconds=seconds, warm_up_seconds=warm_up_seconds))


def ramp(requests: Scenario, lowest: float, highest: float, seconds: float) -> Scenario:
    """Ever more requests a second."""
    return _of_one(requests, Stage(name="ramp", rate=lowest, ramp_to=highest, seconds=seconds))


def at_rate(requests: Scenario, name: str, rate: float, seconds: float, warm_up_seconds: float) -> Scenario:
    """So many requests a second."""
    return _of_one(requests, Stage(name=name, rate=rate, seconds=seconds, warm_up_seconds=warm_up_seconds))


def search(requests: Scenario, start_rate: float, factor: float, bisections: int, seconds: float) -> Scenario:
    """The search for the knee."""
    settings = Search(
        start_rate=start_rate, factor=factor, bisections=bisections, seconds=seconds, warm_up_seconds=seconds / 5
    )
    return requests.model_copy(update={"search": settings, "stages": ()})


def _of_one(requests: Scenario, stage: Stage) -> Scenario:
    return requests.model_copy(update={"search": None, "stages": (stage,)})
