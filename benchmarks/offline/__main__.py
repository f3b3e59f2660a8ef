"""`kvasir translate` compared with CTranslate2 with SentencePiece, and with its own engine on tokens.

    python -m benchmarks.offline --checkpoint FOLDER --data LINES.txt [--limit 10000] [--repetitions 5]

Every measurement is a process of its own; all kinds alternate. `seconds` exclude loading, `command` is the whole
command from start to exit, `processor` the time that it takes on all processors, which depends least on other load.
Ratios are those of one repetition: median, minimum and maximum.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, NamedTuple

import typer

from benchmarks.engines.models import Conversions, Model
from benchmarks.machine import describe_machine, usable_cpus
from benchmarks.paths import DEFAULT_BUNDLE, OUTPUT, ROOT
from benchmarks.progress import log_progress

KVASIR, ENGINE, CTRANSLATE2 = "kvasir translate", "engine on tokens", "CTranslate2 with SentencePiece"
CTRANSLATE2_BATCH_TOKENS = (512, 1024, 2048, 4096)


class Run(NamedTuple):
    """Seconds of one run: without loading, of the whole command, and of processors."""

    seconds: float
    command: float
    processor: float


def main(
    data: Annotated[Path, typer.Option(help="text, one sentence a line")],
    bundle: Path = DEFAULT_BUNDLE,
    checkpoint: Annotated[Path | None, typer.Option(help="the same weights, for CTranslate2")] = None,
    limit: Annotated[int, typer.Option(min=1, help="maximum number of lines")] = 10_000,
    repetitions: Annotated[int, typer.Option(min=1)] = 5,
    beam_size: Annotated[list[int], typer.Option(min=1)] = [1, 4],  # noqa: B006 - Typer copies it
    output: Annotated[Path, typer.Option(help="folder of converted models")] = OUTPUT,
    floors: Annotated[Path | None, typer.Option(help="TOML file of floors; exit with 1 below one of them")] = None,
) -> None:
    """Print a table of ratios for each beam size."""
    missed: list[str] = []
    print(f"{describe_machine().cpu}, {usable_cpus()} processors, load before {describe_machine().load_before}")
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines.txt"
        kept = data.read_text("utf-8").split("\n")[:limit]
        lines.write_text("".join(f"{line.split(chr(9))[0]}\n" for line in kept if line), "utf-8")
        print(f"{sum(map(bool, kept))} lines, {repetitions} repetitions\n")
        for beams in beam_size:
            commands = _commands(bundle, checkpoint, lines, beams, output)
            measured = _measured(commands, repetitions)
            print(_table(measured, beams))
            if floors is not None:
                missed += below_floors(seconds_ratios(measured), beams, tomllib.loads(floors.read_text("utf-8")))
    if missed:
        print("\n".join(missed))
        raise typer.Exit(1)


def seconds_ratios(measured: Mapping[str, Sequence[Run]]) -> dict[str, float]:
    """Return the median ratio of the seconds of each kind to those of Kvasir in the same repetition."""
    own = measured[KVASIR]
    return {
        name: median([theirs.seconds / ours.seconds for theirs, ours in zip(runs, own, strict=True)])
        for name, runs in measured.items()
    }


def below_floors(ratios: Mapping[str, float], beams: int, floors: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return a line for each ratio below its floor, of those that were measured."""
    return [
        f"beam size {beams}, {name}: {ratios[name]:.2f} times Kvasir's seconds; the floor is {floor}"
        for name, floor in floors[f"beam-{beams}"].items()
        if name in ratios and ratios[name] < floor
    ]


def _commands(bundle: Path, checkpoint: Path | None, lines: Path, beams: int, output: Path) -> dict[str, list[str]]:
    stats = lines.with_name("stats.json")
    beam = ["--beam-size", str(beams)]
    translate = ["kvasir", "translate", str(lines), "--model", str(bundle)]
    commands = {
        KVASIR: [*translate, "--output", str(lines.with_name("out.txt")), "--stats", str(stats), *beam],
        ENGINE: ["benchmarks.offline.engine_tokens", str(bundle), str(lines), *beam],
    }
    if checkpoint is not None:
        model = Conversions(output.resolve() / "models").ctranslate2(Model("text", checkpoint, {}), "int8")
        start = ["benchmarks.offline.ctranslate2_texts", str(model), str(checkpoint), str(lines), *beam]
        layouts = {
            (inter, tokens): [*start, f"--inter-threads={inter}", f"--intra-threads={usable_cpus() // inter}"]
            for inter in sorted({usable_cpus(), 1})
            for tokens in CTRANSLATE2_BATCH_TOKENS
        }
        for (_, tokens), command in layouts.items():
            command.append(f"--batch-tokens={tokens}")
        seconds = {layout: _run(command).seconds for layout, command in layouts.items()}
        best = min(seconds, key=lambda layout: seconds[layout])
        log_progress(f"CTranslate2, beam size {beams}: {best[0]} at once, batches of {best[1]} tokens")
        commands[CTRANSLATE2] = layouts[best]
    return commands


def _measured(commands: dict[str, list[str]], repetitions: int) -> dict[str, list[Run]]:
    measured: dict[str, list[Run]] = defaultdict(list)
    for repetition in range(repetitions):
        for name, command in commands.items():
            measured[name].append(_run(command))
            log_progress(f"{repetition + 1}/{repetitions} {name}: {measured[name][-1].seconds:.2f} s")
    return measured


def _run(command: list[str]) -> Run:
    """Run a module of this project."""
    start, busy = time.perf_counter(), _children_seconds()
    ran = subprocess.run(  # noqa: S603 - a command of this project
        [sys.executable, "-m", *command], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    whole, processor = time.perf_counter() - start, _children_seconds() - busy
    if "--stats" in command:
        report = json.loads(Path(command[command.index("--stats") + 1]).read_text("utf-8"))
    else:
        report = json.loads(ran.stdout.splitlines()[-1])
    return Run(float(report["seconds"]), whole, processor)


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _table(measured: dict[str, list[Run]], beams: int) -> str:
    own = measured[KVASIR]
    titles = ["seconds", "command, s", "processor, s", "seconds / Kvasir", "command / Kvasir", "processor / Kvasir"]
    rows = [f"| beam size {beams} | {' | '.join(titles)} |", "|---" * (len(titles) + 1) + "|"]
    for name, runs in measured.items():
        cells = [f"{median(seconds):.2f}" for seconds in zip(*runs, strict=True)]
        for index in range(3):
            ratios = [theirs[index] / ours[index] for theirs, ours in zip(runs, own, strict=True)]
            cells.append(f"{median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})")
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    typer.run(main)
