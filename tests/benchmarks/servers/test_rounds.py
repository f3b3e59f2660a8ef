"""Interleaved runs: real processes that are paused and continued, with simulated loads."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.servers.results import ServerFound
from benchmarks.servers.rounds import Procedure, ServerUnderTest, merged, run_rounds
from benchmarks.servers.running import InterleavedRuns
from benchmarks.servers.server_kinds import Launch, ServerKind, Settings
from benchmarks.servers.tuning import Effort, requests_for, tune
from loadtest.cli.run import RunOptions
from loadtest.results.run_folder import RunFolder
from loadtest.results.totals import totals
from loadtest.workload.scenario import Scenario, load_scenario
from tests.loadtest.simulated_run import Load, SimulatedServer, write_run

# Simulated servers: number of parallel requests, and capacity in requests per second.
NUM_SERVERS = {"quick": 4, "slow": 1}
CAPACITY = {"quick": 24.0, "slow": 5.0}
EFFORT = Effort(closed_loop_seconds=6, ramp_seconds=6)


class Simulation:
    """Simulates a queue with that many servers instead of sending. Records which processes ran meanwhile."""

    def __init__(self) -> None:
        self.awake: list[set[str]] = []
        self.num_servers = dict(NUM_SERVERS)
        self.interleaved: InterleavedRuns

    def __call__(self, url: str, scenario: Scenario, folder: Path, options: RunOptions) -> RunFolder:
        """Replace `run_scenario`."""
        assert options.server_pid is not None
        self.awake.append({state(pid) for pid in self.interleaved.pids.values()})
        assert state(options.server_pid) != "T"
        loads = [Load(s.name, self._middle(s.rates()), seconds=s.seconds) for s in scenario.stages if not s.users]
        loads += [Load(s.name, users=s.users, seconds=s.seconds) for s in scenario.stages if s.users]
        if search := scenario.search:
            rates = [search.start_rate * search.factor**power for power in range(4)]
            loads += [Load(f"search: {rate:g}/s", rate, seconds=12, is_search_step=True) for rate in rates]
        simulated = SimulatedServer(
            self.num_servers[options.label], slowness=2.0, loads=tuple(loads), has_metrics=False
        )
        return write_run(folder, simulated, options.seed, options.label)

    @staticmethod
    def _middle(rates: tuple[float, float]) -> float:
        return sum(rates) / 2


def state(pid: int) -> str:
    """Return the letter of the process state; T: stopped."""
    return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]


def launch(settings: Settings) -> Launch:
    """Return a server that starts quickly and receives no requests."""
    command = (sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "{port}")
    return Launch(command, "/", dict(settings))


def server_under_test(name: str) -> ServerUnderTest:
    kind = ServerKind(name, launch, {"window": "2"}, (({"window": "2"}, {"window": "5"}),))
    found = ServerFound(name, {"window": "2"}, capacity=CAPACITY[name])
    return ServerUnderTest(kind, requests_for(load_scenario("steady"), 4), found)


def procedure(folder: Path, rounds: int, give_up: float = float("inf")) -> Procedure:
    return Procedure(folder / "rounds", step_seconds=12, load_seconds=12, rounds=rounds, give_up=give_up)


@pytest.fixture
def simulation() -> Simulation:
    return Simulation()


@pytest.fixture
def interleaved(simulation: Simulation, tmp_path: Path) -> Iterator[InterleavedRuns]:
    with InterleavedRuns(tmp_path / "logs", seed=1, runner=simulation) as interleaved:
        simulation.interleaved = interleaved
        yield interleaved


def test_servers_are_measured_interleaved_and_paused_in_between(
    simulation: Simulation, interleaved: InterleavedRuns, tmp_path: Path
) -> None:
    both = [server_under_test("quick"), server_under_test("slow")]
    assert run_rounds(interleaved, both, procedure(tmp_path, rounds=2)) == 2
    quick, slow = (one.found for one in both)
    assert [each.round for each in quick.knees] == [1, 2]
    assert quick.knee is not None
    assert slow.knee is not None
    assert quick.knee > 2 * slow.knee
    assert {load.rate for load in quick.loads} >= {load.rate for load in slow.loads}
    # The measured server runs; the other one, once started, is stopped.
    assert all("T" in awake and len(awake) == 2 for awake in simulation.awake[1:])


def test_runs_of_a_server_become_one_run(interleaved: InterleavedRuns, tmp_path: Path) -> None:
    one = server_under_test("quick")
    run_rounds(interleaved, [one], procedure(tmp_path, rounds=2))
    whole = totals(merged(one.runs, tmp_path / "whole", "quick"))
    parts = [totals(run) for _, run in one.runs]
    assert [stage.all for stage in whole.stages] == [stage.all for part in parts for stage in part.stages]
    assert whole.headline.goodput == max(part.headline.goodput or 0 for part in parts)
    assert len(parts) == 2 * (1 + len({load.rate for load in one.found.loads}))


def test_the_best_of_the_tried_settings_is_chosen(
    simulation: Simulation, interleaved: InterleavedRuns, tmp_path: Path
) -> None:
    def worse_with_a_window_of_5(url: str, scenario: Scenario, folder: Path, options: RunOptions) -> RunFolder:
        simulation.num_servers["quick"] = 2 if interleaved.started["quick"]["window"] == "5" else 4
        return simulation(url, scenario, folder, options)

    one = server_under_test("quick")
    interleaved.runner = worse_with_a_window_of_5
    tuned = tune(interleaved, one.kind, {"window": "2"}, one.requests, tmp_path, EFFORT, lambda: True)
    assert tuned.settings == {"window": "2"}
    assert list(tuned.tried) == ["window 2", "window 5"]
    assert tuned.tried["window 2"] > tuned.tried["window 5"]
    assert tuned.capacity > 5
