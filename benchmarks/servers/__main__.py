"""One scenario against Kvasir and other servers with the same weights.

    python -m benchmarks.servers --checkpoint FOLDER --scenario knee --servers kvasir,ctranslate2 --output FOLDER

README.md next to this file describes the procedure and the results.
"""

import argparse
import json
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.paths import ROOT
from benchmarks.servers.compare import ComparisonOptions, compare
from benchmarks.servers.results import Comparison, render, to_json
from benchmarks.servers.rounds import Procedure
from benchmarks.servers.server_kinds import NAMES, Material
from loadtest.coordination.machine import machine_info, versions
from loadtest.results.run_folder import RECORDS_FILE
from loadtest.workload.scenario import Scenario, ScenarioInvalid, load_scenario

_DEFAULT_SERVERS = "kvasir,ctranslate2,ctranslate2-bounded,huggingface"


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print the tables, write them and all runs to a folder, and return the exit code."""
    chosen = _parser().parse_args(words)
    # SIGTERM must also end the load generator and the servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    began = time.monotonic()
    names = [name.strip() for name in chosen.servers.split(",") if name.strip()]
    out = Path(chosen.output).resolve()
    try:
        scenario = load_scenario(chosen.scenario)
        settings = json.loads(Path(chosen.settings).read_text("utf-8")) if chosen.settings else {}
    except (ScenarioInvalid, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if unknown := [name for name in names if name not in NAMES]:
        print(f"error: unknown server {unknown[0]}; available: {', '.join(NAMES)}", file=sys.stderr)
        return 1
    # A comparison that stopped while tuning leaves runs too. Its models and settings may be reused.
    if records := next(out.rglob(RECORDS_FILE), None):
        print(
            f"error: {out} already contains a run, {records.parent}; set another folder with --output", file=sys.stderr
        )
        return 1
    options = ComparisonOptions(
        scenario=scenario,
        material=Material(
            checkpoint=Path(chosen.checkpoint).resolve(),
            bundle=Path(chosen.bundle).resolve(),
            folder=out / "models",
            source=scenario.workload.source,
            beam_size=chosen.beam_size,
            kvasir_flags=shlex.split(chosen.kvasir_flags),
        ),
        servers=names,
        settings=settings,
        is_tuning=chosen.tune,
        seed=chosen.seed,
        out=out,
    )
    procedure = Procedure(
        out / "rounds",
        chosen.step_seconds,
        chosen.load_seconds,
        chosen.rounds,
        began + 60 * chosen.limit_minutes,
    )
    comparison = Comparison(
        scenario=scenario.name,
        objective=_objective(scenario),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=machine_info(),
        versions=versions(),
        seed=chosen.seed,
    )
    compare(options, procedure, comparison)
    tables = render(comparison)
    (out / "peers.md").write_text(tables, "utf-8")
    (out / "peers.json").write_text(to_json(comparison), "utf-8")
    print(tables)
    return 0 if any(server.knees for server in comparison.servers) else 1


def _objective(scenario: Scenario) -> str:
    objective = scenario.objective
    return (
        f"{objective.milliseconds:g} ms for each begun {objective.max_source_tokens} source tokens, "
        f"of {objective.share:.0%} of the requests at the knee"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.servers", description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", required=True, help="folder of a Hugging Face Marian checkpoint")
    parser.add_argument("--bundle", default=str(ROOT / "models" / "en-de"), help="Kvasir bundle of the same weights")
    parser.add_argument("--scenario", default="knee", help="scenario whose requests are sent; its stages are ignored")
    parser.add_argument(
        "--servers", default=_DEFAULT_SERVERS, help=f"servers, the first compared with the others: {', '.join(NAMES)}"
    )
    parser.add_argument("--output", default=str(ROOT / "build" / "peers"), help="folder of all results")
    parser.add_argument("--limit-minutes", type=float, default=60, help="no round starts that would exceed this limit")
    parser.add_argument(
        "--rounds", type=int, default=3, help="maximum number of rounds; the knees of the first are always searched"
    )
    parser.add_argument("--step-seconds", type=float, default=15, help="duration of each step of a search for a knee")
    parser.add_argument("--load-seconds", type=float, default=25, help="duration of each load offered to all servers")
    parser.add_argument(
        "--beam-size", type=int, choices=[1, 4], default=None, help="beam size of all requests; 1 is greedy"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--tune", action=argparse.BooleanOptionalAction, default=True, help="try settings of the other servers"
    )
    parser.add_argument("--settings", default=None, help="settings.json of an earlier comparison, instead of tuning")
    parser.add_argument("--kvasir-flags", default="", help='additional flags of kvasir serve: "--max-rows 32"')
    return parser


if __name__ == "__main__":
    sys.exit(main())
