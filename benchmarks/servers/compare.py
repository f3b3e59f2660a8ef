"""A whole comparison: servers started and tuned, their answers compared, rounds run, reports written."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.servers.answers import agreement, texts_of, translations
from benchmarks.servers.loads import requests_for
from benchmarks.servers.merging import merged
from benchmarks.servers.process import Launch, ServerFailed, ServerProcess
from benchmarks.servers.results import Comparison, ServerFound
from benchmarks.servers.rounds import Procedure, ServerUnderTest, run_rounds
from benchmarks.servers.server_kinds import Material, Protocol, ServerKind, contender
from benchmarks.servers.tuning import Effort, Tuned, capacity, tune
from benchmarks.servers.turns import InterleavedRuns, say
from loadtest.cli.run import LoadTestFailed
from loadtest.report.write_comparison import write_comparison
from loadtest.workload.scenario import Scenario, ScenarioInvalid

TUNING_SHARE = 0.4  # of the time there is
SEARCHES = (1, 4)  # beam sizes in which answers are compared


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """What to compare. `settings` are known ones, by server; those servers are not tuned.

    `protocol` is asked of all servers; with None each is asked in its own.
    """

    scenario: Scenario
    material: Material
    servers: Sequence[str]
    protocol: Protocol | None
    settings: Mapping[str, Mapping[str, str]]
    is_tuning: bool
    num_answers: int
    seed: int
    out: Path


def compare(options: ComparisonOptions, procedure: Procedure, comparison: Comparison) -> None:
    """Fill in the comparison, and leave all runs and reports in a folder.

    A server that cannot run stays in the tables with the reason.
    """
    contestants: list[ServerUnderTest] = []
    with InterleavedRuns(options.out / "logs", options.seed) as turns:
        try:
            for name in options.servers:
                contestant = _prepared(name, options)
                comparison.servers.append(contestant.found)
                contestants.append(contestant)
            say("settings")
            _choose_settings(turns, contestants, options, procedure)
            if options.num_answers:
                say("answers")
                _compare_answers(turns, contestants, options, comparison)
            say("rounds")
            rounds = run_rounds(turns, [one for one in contestants if one.is_in], procedure)
            comparison.notes.append(f"{rounds} rounds of {procedure.rounds} within the time there was.")
        except KeyboardInterrupt:
            comparison.notes.append("Broken off: what was measured until then.")
    _write_runs(contestants, options.out)


def _prepared(name: str, options: ComparisonOptions) -> ServerUnderTest:
    """A server that can be started, or one with the reason why not."""
    try:
        made = contender(name, options.material)
        spoken = options.protocol or made.protocol
        if made.protocol == "libretranslate" and spoken != made.protocol:
            raise ServerFailed("it speaks no other protocol than its own")
        requests = requests_for(options.scenario, spoken, options.material.beam_size)
    except (ServerFailed, ScenarioInvalid) as failure:
        say(f"  {name} is out: {failure}")
        nobody = ServerKind(name, "native", _never, {})
        return ServerUnderTest(nobody, options.scenario, ServerFound(name, "native", not_run=str(failure)))
    return ServerUnderTest(made, requests, ServerFound(name, spoken))


def _never(_: Mapping[str, str]) -> Launch:
    raise ServerFailed("it cannot be had")


def _choose_settings(
    turns: InterleavedRuns, contestants: Sequence[ServerUnderTest], options: ComparisonOptions, procedure: Procedure
) -> None:
    now = time.monotonic()
    stop_tuning = now + TUNING_SHARE * (procedure.give_up - now)
    chosen: dict[str, dict[str, str]] = {name: dict(settings) for name, settings in options.settings.items()}
    for contestant in contestants:
        if not contestant.is_in:
            continue
        made, found = contestant.contender, contestant.found
        start = {**made.defaults, **chosen.get(made.relative, {}), **chosen.get(made.name, {})}
        folder = options.out / "tuning" / made.name
        is_known = not options.is_tuning or made.name in options.settings
        try:
            if is_known:
                tuned = Tuned(start, capacity(turns, made, start, contestant.requests, folder, Effort()))
            else:
                tuned = tune(
                    turns,
                    made,
                    start,
                    contestant.requests,
                    folder,
                    Effort(),
                    lambda: time.monotonic() < stop_tuning,
                    is_relative_tuned=made.relative in chosen,
                )
        except (ServerFailed, LoadTestFailed) as failure:
            found.not_run = str(failure)
            say(f"  {made.name} is out: {failure}")
            continue
        chosen[made.name] = tuned.settings
        found.settings, found.capacity, found.tried = tuned.settings, tuned.capacity, tuned.tried
        say(f"  {made.name}: {tuned.capacity:.1f} requests/s in closed loops")
    (options.out / "settings.json").write_text(json.dumps(chosen, indent=2) + "\n", "utf-8")


def _compare_answers(
    turns: InterleavedRuns, contestants: Sequence[ServerUnderTest], options: ComparisonOptions, comparison: Comparison
) -> None:
    texts = texts_of(options.scenario, options.seed, options.num_answers)
    try:
        reference = _reference(options, texts)
    except (ServerFailed, OSError, ValueError) as failure:
        comparison.notes.append(f"Answers were not compared: {failure}")
        return
    for contestant in contestants:
        if not contestant.is_in:
            continue
        made, found = contestant.contender, contestant.found
        sizes = SEARCHES if made.protocol == "native" else (options.material.beam_size or 4,)
        try:
            server = turns.start(made, found.settings)
            for beam_size in sizes:
                said = translations(server.url, made.protocol, texts, beam_size, options.scenario)
                found.agreements.append(agreement(beam_size, said, reference[beam_size]))
            server.pause()
        except (ServerFailed, OSError, ValueError) as failure:
            found.not_run = str(failure)


def _reference(options: ComparisonOptions, texts: Sequence[str]) -> dict[int, list[str]]:
    """What Hugging Face says in float32, by beam size; nothing of it is cut off."""
    made = contender("huggingface", options.material)
    settings = {"dtype": "float32", "target-factor": "0"}
    with ServerProcess(made.launch(settings), options.out / "logs" / "reference.log") as server:
        return {size: translations(server.url, "native", texts, size, options.scenario) for size in SEARCHES}


def _write_runs(contestants: Sequence[ServerUnderTest], out: Path) -> None:
    """All of a server as one run, and a page that has all servers."""
    runs = [
        merged(contestant.runs, out / "runs" / contestant.found.name, contestant.found.name)
        for contestant in contestants
        if contestant.runs
    ]
    if len(runs) > 1:
        write_comparison(runs, out)
