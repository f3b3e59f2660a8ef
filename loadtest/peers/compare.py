"""A whole comparison: servers started and tuned, their answers compared, rounds run, reports written."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadtest.peers.answers import agreement, texts_of, translations
from loadtest.peers.contenders import Contender, Material, Protocol, contender
from loadtest.peers.loads import requests_for
from loadtest.peers.merging import merged
from loadtest.peers.process import Launch, ServerFailed, ServerProcess
from loadtest.peers.results import Comparison, ServerFound
from loadtest.peers.rounds import Contestant, Procedure, run_rounds
from loadtest.peers.tuning import Effort, Tuned, capacity, tune
from loadtest.peers.turns import Turns, say
from loadtest.report.write_comparison import write_comparison
from loadtest.run import LoadTestFailed
from loadtest.scenario import Scenario, ScenarioInvalid

TUNING_SHARE = 0.4  # of the time there is
SEARCHES = (1, 4)  # beam sizes in which answers are compared


@dataclass(frozen=True, slots=True)
class Wishes:
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


def compare(wishes: Wishes, procedure: Procedure, comparison: Comparison) -> None:
    """Fill in the comparison, and leave all runs and reports in a folder.

    A server that cannot run stays in the tables with the reason.
    """
    contestants: list[Contestant] = []
    with Turns(wishes.out / "logs", wishes.seed) as turns:
        try:
            for name in wishes.servers:
                contestant = _prepared(name, wishes)
                comparison.servers.append(contestant.found)
                contestants.append(contestant)
            say("settings")
            _choose_settings(turns, contestants, wishes, procedure)
            if wishes.num_answers:
                say("answers")
                _compare_answers(turns, contestants, wishes, comparison)
            say("rounds")
            rounds = run_rounds(turns, [one for one in contestants if one.is_in], procedure)
            comparison.notes.append(f"{rounds} rounds of {procedure.rounds} within the time there was.")
        except KeyboardInterrupt:
            comparison.notes.append("Broken off: what was measured until then.")
    _write_runs(contestants, wishes.out)


def _prepared(name: str, wishes: Wishes) -> Contestant:
    """A server that can be started, or one with the reason why not."""
    try:
        made = contender(name, wishes.material)
        spoken = wishes.protocol or made.protocol
        if made.protocol == "libretranslate" and spoken != made.protocol:
            raise ServerFailed("it speaks no other protocol than its own")
        requests = requests_for(wishes.scenario, spoken, wishes.material.beam_size)
    except (ServerFailed, ScenarioInvalid) as failure:
        say(f"  {name} is out: {failure}")
        nobody = Contender(name, "native", _never, {})
        return Contestant(nobody, wishes.scenario, ServerFound(name, "native", not_run=str(failure)))
    return Contestant(made, requests, ServerFound(name, spoken))


def _never(_: Mapping[str, str]) -> Launch:
    raise ServerFailed("it cannot be had")


def _choose_settings(turns: Turns, contestants: Sequence[Contestant], wishes: Wishes, procedure: Procedure) -> None:
    now = time.monotonic()
    stop_tuning = now + TUNING_SHARE * (procedure.give_up - now)
    chosen: dict[str, dict[str, str]] = {name: dict(settings) for name, settings in wishes.settings.items()}
    for contestant in contestants:
        if not contestant.is_in:
            continue
        made, found = contestant.contender, contestant.found
        start = {**made.defaults, **chosen.get(made.relative, {}), **chosen.get(made.name, {})}
        folder = wishes.out / "tuning" / made.name
        is_known = not wishes.is_tuning or made.name in wishes.settings
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
    (wishes.out / "settings.json").write_text(json.dumps(chosen, indent=2) + "\n", "utf-8")


def _compare_answers(turns: Turns, contestants: Sequence[Contestant], wishes: Wishes, comparison: Comparison) -> None:
    texts = texts_of(wishes.scenario, wishes.seed, wishes.num_answers)
    try:
        reference = _reference(wishes, texts)
    except (ServerFailed, OSError, ValueError) as failure:
        comparison.notes.append(f"Answers were not compared: {failure}")
        return
    for contestant in contestants:
        if not contestant.is_in:
            continue
        made, found = contestant.contender, contestant.found
        sizes = SEARCHES if made.protocol == "native" else (wishes.material.beam_size or 4,)
        try:
            server = turns.start(made, found.settings)
            for beam_size in sizes:
                said = translations(server.url, made.protocol, texts, beam_size, wishes.scenario)
                found.agreements.append(agreement(beam_size, said, reference[beam_size]))
            server.pause()
        except (ServerFailed, OSError, ValueError) as failure:
            found.not_run = str(failure)


def _reference(wishes: Wishes, texts: Sequence[str]) -> dict[int, list[str]]:
    """What Hugging Face says in float32, by beam size; nothing of it is cut off."""
    made = contender("huggingface", wishes.material)
    settings = {"dtype": "float32", "target-factor": "0"}
    with ServerProcess(made.launch(settings), wishes.out / "logs" / "reference.log") as server:
        return {size: translations(server.url, "native", texts, size, wishes.scenario) for size in SEARCHES}


def _write_runs(contestants: Sequence[Contestant], out: Path) -> None:
    """All of a server as one run, and a page that has all servers."""
    runs = [
        merged(contestant.runs, out / "runs" / contestant.found.name, contestant.found.name)
        for contestant in contestants
        if contestant.runs
    ]
    if len(runs) > 1:
        write_comparison(runs, out)
