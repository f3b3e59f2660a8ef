"""Scenarios in Locust: `locust -f loadtest/locustfile.py --headless -H http://127.0.0.1:8000 --scenario steady`.

Without --headless the same options are in the form of Locust's web page. With --master and --worker, or --processes,
several processes send. The scenario decides the number of Locust's users.

Importing locust patches the standard library. `loadtest.cli.run` therefore starts this file in a process of its own,
and no other process imports `coordination.coordinator`, `.worker` or `sending.exchange`.
"""

import logging
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

import gevent
from gevent.queue import Queue
from locust import events
from locust.argument_parser import LocustArgumentParser
from locust.env import Environment
from locust.runners import MasterRunner, WorkerRunner

# Locust puts the folder of this file on the path; the package is named from the folder above.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from loadtest.coordination.coordinator import CoordinationFailed, Coordinator, Plan, StageShape
from loadtest.coordination.machine import be_urgent
from loadtest.coordination.worker import FROM_WORKERS, ScenarioUser, Worker
from loadtest.results.thresholds import Thresholds
from loadtest.workload.requests import with_corpus_digest
from loadtest.workload.scenario import Scenario, load_scenario, scenario_names

__all__ = ["ScenarioUser", "StageShape"]  # what Locust takes from this file

_LONGEST_END_SECONDS = 90.0


class LoadTest:
    """Listener for Locust's start and stop events in the coordinating process."""

    def __init__(self, environment: Environment) -> None:
        assert environment.runner is not None
        self._environment = environment
        self._incoming: Queue = Queue()
        self._coordinator: Coordinator | None = None
        self._greenlet: gevent.Greenlet | None = None
        for kind in FROM_WORKERS:
            environment.runner.register_message(
                kind, lambda environment, msg, kind=kind: self._incoming.put((kind, msg.data))
            )
        environment.events.test_start.add_listener(self._on_test_start)
        environment.events.test_stopping.add_listener(self._on_test_stopping)
        environment.events.quitting.add_listener(self._on_quitting)

    def _on_test_start(self, environment: Environment, **_kwargs: object) -> None:
        self._greenlet = gevent.spawn(self._coordinate)

    def _on_test_stopping(self, environment: Environment, **_kwargs: object) -> None:
        if self._coordinator is not None and self._greenlet is not gevent.getcurrent():
            self._coordinator.stop()

    def interrupt(self) -> bool:
        """End the current run after the answers in flight. Return False if there is no run."""
        if self._coordinator is None or self._coordinator.is_stopped:
            return False
        self._coordinator.stop()
        return True

    def _on_quitting(self, environment: Environment, **_kwargs: object) -> None:
        # Requests in flight are completed, and the measurements are written, before the process exits.
        self._on_test_stopping(environment)
        if self._greenlet is not None and self._greenlet is not gevent.getcurrent():
            self._greenlet.join(timeout=_LONGEST_END_SECONDS)

    def _coordinate(self) -> None:
        environment = self._environment
        options = environment.parsed_options
        assert options is not None
        environment.process_exit_code = 1
        try:
            plan = _plan(environment)
            self._coordinator = Coordinator(environment, plan, self._incoming, _print)
            self._coordinator.run()
            environment.process_exit_code = 0
            if not options.scenario_json:
                _print(f"run complete; write the report with: kvasir loadtest report {plan.folder}")
        except (CoordinationFailed, ValueError, OSError) as error:
            print(f"loadtest: {error}", file=sys.stderr, flush=True)
        finally:
            self._coordinator = None
            assert environment.runner is not None
            if options.headless:
                environment.runner.quit()
            else:
                environment.runner.stop()


def _plan(environment: Environment) -> Plan:
    options = environment.parsed_options
    assert options is not None
    if options.scenario_json:
        scenario = Scenario.model_validate_json(Path(options.scenario_json).read_bytes())
    else:
        scenario = load_scenario(options.scenario_file or options.scenario)
        scenario = scenario.with_overrides(
            rate=options.rate or None, seconds=options.seconds or None, corpus=options.corpus or None
        )
    if options.knee:
        scenario = scenario.with_rates(options.knee)
    name = f"{scenario.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    return Plan(
        scenario=with_corpus_digest(scenario),
        url=environment.host or options.host or "http://127.0.0.1:8000",
        seed=int(options.seed),
        folder=Path(options.output or Path("loadtest-runs") / name),
        label=str(options.label),
        knee=options.knee or None,
        guard_requests=int(options.guard_requests),
        server_pid=options.server_pid or None,
        thresholds=Thresholds(options.max_p95_ms, options.min_goodput, options.max_error_ratio),
    )


def _print(line: str) -> None:
    print(line, flush=True)


def _add_options(parser: LocustArgumentParser) -> None:
    parser.add_argument("--scenario", choices=scenario_names(), default="steady")
    parser.add_argument("--scenario-file", default="", help="path of a scenario (.toml), instead of a named one")
    parser.add_argument(
        "--rate",
        type=float,
        default=0.0,
        help="requests per second, for scenarios with one rate; 0: as in the scenario",
    )
    parser.add_argument("--seconds", type=float, default=0.0, help="duration of each stage; 0: as in the scenario")
    parser.add_argument("--knee", type=float, default=0.0, help="knee in requests per second; 0: search for it")
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of texts and instants; the same seed sends the same requests"
    )
    parser.add_argument("--corpus", default="", help="file of sentences, one per line, instead of generated ones")
    parser.add_argument("--label", default="", help="name of the run in reports")
    parser.add_argument("--output", default="", help="folder of the run; default: a new one under loadtest-runs")
    parser.add_argument(
        "--guard-requests",
        type=int,
        default=300,
        help="number of answers to compare with those of the idle server; 0 disables it",
    )
    parser.add_argument(
        "--server-pid",
        type=int,
        default=0,
        help="process id of a server on this machine, to measure its processor time; 0: none",
    )
    # Stored with the run for the exit code of `kvasir loadtest report`. Not in the form: an empty field would be 0.
    for flag in ("--max-p95-ms", "--min-goodput", "--max-error-ratio"):
        parser.add_argument(flag, type=float, include_in_web_ui=False, help="threshold of the report")
    parser.add_argument(
        "--scenario-json", default="", include_in_web_ui=False, help="path of a resolved scenario (.json)"
    )
    parser.add_argument(
        "--not-urgent", action="store_true", include_in_web_ui=False, help="do not request priority over the server"
    )


def _prepare(environment: Environment, **_kwargs: object) -> None:
    options = environment.parsed_options
    if options is not None and not options.not_urgent:
        be_urgent()
    # Locust's table at the end would be a second set of totals, computed from other data.
    logging.getLogger("locust.stats_logger").disabled = True
    # A master sends no requests. A worker does, and so does the only process of a local test.
    worker = None if isinstance(environment.runner, MasterRunner) else Worker(environment)
    load_test = None if isinstance(environment.runner, WorkerRunner) else LoadTest(environment)

    def on_interrupt() -> None:
        interrupt = load_test.interrupt if load_test is not None else worker.interrupt if worker is not None else None
        if interrupt is None or not interrupt():
            os.kill(os.getpid(), signal.SIGTERM)  # Locust's handler exits

    # Python's own handler raises in the greenlet that runs, and its request would have no record.
    gevent.signal_handler(signal.SIGINT, on_interrupt)


events.init_command_line_parser.add_listener(_add_options)
events.init.add_listener(_prepare)
