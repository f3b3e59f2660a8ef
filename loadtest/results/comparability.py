"""Comparability of runs: warnings about differences, and token counts shared between runs of the same requests."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from loadtest.results.figures import Totals
from loadtest.results.records import Outcome, Record
from loadtest.results.run_folder import RunInfo
from loadtest.results.thresholds import interruption, invalid_reasons, not_answered_again

_Part = Mapping[str, JsonValue]  # of the dump of a scenario

# Fields of a kind of request that do not affect its texts.
_SENDING_FIELDS = ("protocol", "beam_size", "hang_up_after")
# Fields of a stage that are compared. Rates are compared as they were run.
_STAGE_FIELDS = ("seconds", "warm_up_seconds", "users", "arrivals", "kinds")


def with_known_lengths(infos: Sequence[RunInfo], runs: Sequence[list[Record]]) -> list[list[Record]]:
    """Return the records, with source token counts taken from any run of the same requests.

    A server that does not report its tokens has them estimated from words, and would otherwise have another objective
    than one that does. Request n of a stage has the same texts in every run of a scenario and seed, unless something
    that texts are drawn from was changed.
    """
    known: dict[tuple[str, str, int], int] = {}
    drawn = [_drawn_from(info) for info in infos]
    for origins, records in zip(drawn, runs, strict=True):
        for record in records:
            # A stage interrupted by an error has records but no figures.
            if record.stage in origins and not record.source_tokens_estimated and record.source_tokens:
                known[origins[record.stage], record.stage, record.number] = record.source_tokens
    return [
        [
            replace(record, source_tokens=known[key], source_tokens_estimated=False)
            if record.source_tokens_estimated
            and (key := (origins.get(record.stage, ""), record.stage, record.number)) in known
            else record
            for record in records
        ]
        for origins, records in zip(drawn, runs, strict=True)
    ]


def warnings_of(names: Sequence[str], infos: Sequence[RunInfo], totals: Sequence[Totals]) -> Iterator[str]:
    """Yield warnings about each run, and about differences between the first and the others besides the server."""
    for name, of_run in zip(names, totals, strict=True):
        yield from (f"{name}: {reason}." for reason in interruption(of_run))
        yield from (f"{name} is {reason}." for reason in invalid_reasons(of_run))
        if of_run.headline.guard_share not in (None, 1.0):
            yield f"{name} answered differently under load than when idle."
        if unanswered := not_answered_again(of_run):
            yield f"{name}: {unanswered}."
        estimated = _estimated_share(of_run)
        if estimated:
            part = "" if estimated == 1 else f" in {max(estimated, 0.001):.1%} of its answers"
            yield f"Source tokens of {name} are estimated from words{part}; its objectives depend on them."
    for name, info, of_run in zip(names[1:], infos[1:], totals[1:], strict=True):
        for what, ours, theirs in (
            ("another scenario", totals[0].scenario, of_run.scenario),
            ("another seed", infos[0].seed, info.seed),
            ("another machine", infos[0].machine, info.machine),
            ("another objective", totals[0].objective, of_run.objective),
        ):
            if ours != theirs:
                yield f"{name} was run with {what} than {names[0]}: {theirs}, not {ours}."
        yield from (f"{name} was run with {what} than {names[0]}." for what in _other_requests(infos[0], info))
        rates = {stage.name: (stage.rate, stage.ramp_to) for stage in infos[0].stages}
        other = [s.name for s in info.stages if s.name in rates and rates[s.name] != (s.rate, s.ramp_to)]
        if other:
            yield f"{name} had other rates than {names[0]} in {', '.join(other)}; these loads are not equal."


def _other_requests(base: RunInfo, other: RunInfo) -> Iterator[str]:
    """Yield the differences between the requests and durations of two runs."""
    ours, theirs = base.scenario, other.scenario
    if changed := _changed(_part(ours, "workload"), _part(theirs, "workload")):
        yield f"another workload ({changed})"
    our_kinds, their_kinds = _named(ours, "kinds"), _named(theirs, "kinds")
    for kind in dict.fromkeys([*our_kinds, *their_kinds]):
        if kind not in our_kinds or kind not in their_kinds:
            yield f"{'fewer' if kind in our_kinds else 'more'} kinds of request ({kind})"
        elif changed := _changed(our_kinds[kind], their_kinds[kind]):
            yield f"another kind {kind} ({changed})"
    our_stages, their_stages = _named(ours, "stages"), _named(theirs, "stages")
    for stage in our_stages:
        if stage in their_stages and (changed := _changed(our_stages[stage], their_stages[stage], _STAGE_FIELDS)):
            yield f"another stage {stage} ({changed})"
    our_search, their_search = _part(ours, "search"), _part(theirs, "search")
    if our_search and their_search and (changed := _changed(our_search, their_search, _STAGE_FIELDS)):
        yield f"other steps of the search ({changed})"


def _changed(base: _Part, other: _Part, fields: Sequence[str] = ()) -> str:
    """Return the fields that differ, with both values; compares all if `fields` is empty. Empty if nothing differs."""
    looked_at = fields or dict.fromkeys([*base, *other])
    differing = [field for field in looked_at if base.get(field) != other.get(field)]
    return ", ".join(
        f"{field} {json.dumps(other.get(field))}, not {json.dumps(base.get(field))}" for field in differing
    )


def _drawn_from(info: RunInfo) -> dict[str, str]:
    """Return everything that the texts of each stage depend on, as JSON."""
    scenario = info.scenario
    kinds = [
        {field: value for field, value in kind.items() if field not in _SENDING_FIELDS}
        for kind in _named(scenario, "kinds").values()
    ]
    of_all: list[JsonValue] = [scenario.get("name"), info.seed, scenario.get("workload"), *kinds]
    stages = _named(scenario, "stages")
    search = _part(scenario, "search")
    return {
        stage.name: json.dumps([*of_all, stages.get(stage.name, search).get("kinds")], sort_keys=True)
        for stage in info.stages
    }


def _part(scenario: _Part, name: str) -> _Part:
    part = scenario.get(name)
    return part if isinstance(part, dict) else {}


def _named(scenario: _Part, name: str) -> dict[str, _Part]:
    """Return the parts of a list by name, in their order."""
    parts = scenario.get(name)
    return {str(part.get("name")): part for part in parts if isinstance(part, dict)} if isinstance(parts, list) else {}


def _estimated_share(totals: Totals) -> float:
    """Return the share of a run's answers with estimated source tokens."""
    samples = [stage.all for stage in totals.stages]
    answered = [sample.outcomes[Outcome.ANSWERED] for sample in samples]
    estimated = sum(sample.source_tokens_estimated * n for sample, n in zip(samples, answered, strict=True))
    return estimated / sum(answered) if any(answered) else 0.0
