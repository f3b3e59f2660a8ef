"""Milliseconds per decoder step of every engine, by number of rows and by cached length.

    python -m benchmarks.decoder_steps.by_engine [--checkpoint FOLDER] [--rows 1 ...] [--length 16 --length 256 ...]

All engines generate to a fixed length, with a model that never ends. A step is the time difference of a longer and a
shorter run divided by the tokens between them: it includes everything but the encoder. One batch at a time, on one
replica with all threads.
"""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated

import numpy as np
import typer

from benchmarks.decoder_steps.plot import Steps, StepTimes
from benchmarks.engines.engines import ENGINE_NAMES, Engine, EngineOptions, Setting, select_engines, settings_of
from benchmarks.engines.models import Conversions, Model
from benchmarks.engines.results import Ratio, ratio_of
from benchmarks.machine import describe_machine, usable_cpus
from benchmarks.paths import OUTPUT
from benchmarks.progress import log_progress
from benchmarks.workers.process import Worker, WorkerFailed
from benchmarks.workers.protocol import Job
from benchmarks.workloads import Workload, random_sources

SOURCE_LEN = 20
ROWS_AT_LENGTHS = 32  # rows in the table of cached lengths
WINDOW = (16, 48)  # first and last token of the steps in the table by rows
LENGTHS_WINDOW = 64  # tokens before a cached length whose steps are measured
DEFAULT_ENGINES = ["kvasir:int8", "ctranslate2:int8"]
DEFAULT_ROWS = [1, 8, 32, 64, 128]
DEFAULT_LENGTHS = [16, 64, 128, 256]
DEFAULT_CPUS = usable_cpus()


@dataclass(frozen=True, slots=True)
class _Runner:
    name: str
    worker: Worker
    setting: Setting

    def step_milliseconds(self, steps: Steps, vocab_size: int) -> float:
        """Return milliseconds per step from the difference of a longer and a shorter run."""
        random = np.random.default_rng(steps.rows)
        sources = random_sources(random, [SOURCE_LEN] * steps.rows, vocab_size)

        def seconds(num_tokens: int) -> float:
            job = Job(sources=sources, beam_size=1, max_new_tokens=num_tokens, batch_size=steps.rows)
            # The better of two runs: a difference contains the disturbances of both.
            done = min((self.worker.run(job) for _ in range(2)), key=lambda done: done.seconds)
            if done.output_tokens != num_tokens * steps.rows:
                raise WorkerFailed(f"generated {done.output_tokens} tokens instead of {num_tokens * steps.rows}")
            return done.seconds

        return (seconds(steps.end) - seconds(steps.begin)) / (steps.end - steps.begin) * 1e3


def main(
    checkpoint: Annotated[
        Path | None, typer.Option(help="Marian checkpoint; default: a random one of OPUS-MT's size")
    ] = None,
    engine: Annotated[list[str], typer.Option(help=f"engines: {', '.join(ENGINE_NAMES)}")] = DEFAULT_ENGINES,
    rows: Annotated[list[int], typer.Option(help="numbers of rows")] = DEFAULT_ROWS,
    length: Annotated[list[int], typer.Option(help="cached lengths")] = DEFAULT_LENGTHS,
    repetitions: Annotated[int, typer.Option(min=1)] = 5,
    threads: Annotated[int, typer.Option(min=1)] = DEFAULT_CPUS,
    output: Annotated[Path, typer.Option(help="folder of results and converted models")] = OUTPUT,
) -> None:
    """Measure, and write steps.json, steps.md and steps.png."""
    output = output.resolve()
    conversions = Conversions(output / "models")
    if checkpoint is None:
        model = Model("opus-size", conversions.opus_size(), {})
    else:
        source = Model(checkpoint.resolve().name, checkpoint.resolve(), {})
        model = Model(f"{source.name}-endless", conversions.endless(source), {})
    times = StepTimes(
        machine=describe_machine(),
        model=model.name,
        threads=threads,
        by_rows=[Steps(rows=count, begin=WINDOW[0], end=WINDOW[1]) for count in rows],
        by_length=[Steps(rows=ROWS_AT_LENGTHS, begin=max(tokens - LENGTHS_WINDOW, 1), end=tokens) for tokens in length],
        not_run={},
    )
    chosen = select_engines(engine)
    with ExitStack() as stack:
        runners = []
        for each in chosen:
            try:
                setting = _setting(each, model, conversions, threads, max(*rows, ROWS_AT_LENGTHS))
                worker = stack.enter_context(Worker(setting.command, output / "logs" / f"steps {each.name}.log"))
                runners.append(_Runner(each.name, worker, setting))
            except WorkerFailed as failure:
                times.not_run[each.name] = str(failure)
        _measure(times, runners, repetitions, _vocab_size(model))
    (output / "steps.json").write_text(times.model_dump_json(indent=2) + "\n", "utf-8")
    text = render(times)
    (output / "steps.md").write_text(text, "utf-8")
    from benchmarks.decoder_steps.plot import draw

    draw(times, output / "steps.png")
    print(text)


def _setting(engine: Engine, model: Model, conversions: Conversions, threads: int, max_rows: int) -> Setting:
    """Return the setting with one replica, all threads, and the rows of the largest batch."""
    workload = Workload(
        "steps", model.name, [], beam_size=1, max_new_tokens=1, forced_length=1, sentences_at_once=max_rows
    )
    return settings_of(engine, workload, model, conversions, EngineOptions(threads, [], {}))[-1]


def _vocab_size(model: Model) -> int:
    assert model.checkpoint is not None
    return len(json.loads((model.checkpoint / "vocab.json").read_text("utf-8")))


def _measure(times: StepTimes, runners: Sequence[_Runner], repetitions: int, vocab_size: int) -> None:
    """Measure all engines interleaved, after one untimed repetition."""
    for repetition in range(repetitions + 1):
        for steps in (*times.by_rows, *times.by_length):
            for runner in runners:
                if runner.name in times.not_run:
                    continue
                try:
                    milliseconds = runner.step_milliseconds(steps, vocab_size)
                except WorkerFailed as failure:
                    times.not_run[runner.name] = str(failure)
                    continue
                if repetition:
                    steps.milliseconds.setdefault(runner.name, []).append(milliseconds)
        log_progress(f"repetition {repetition} of {repetitions}")


def render(times: StepTimes) -> str:
    """Return two tables: milliseconds per step, with each engine's ratio to the first one."""
    names = [name for name in times.by_rows[0].milliseconds if name not in times.not_run]
    first, others = names[0], names[1:]
    columns = [*names, *(f"{other} / {first}" for other in others)]
    lines = [
        f"{times.model}, {times.threads} threads, milliseconds per step: median, and ratio (minimum - maximum)",
        "",
    ]
    for title, series in (("rows", times.by_rows), (f"cached tokens, {ROWS_AT_LENGTHS} rows", times.by_length)):
        lines += [f"| {title} | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
        for steps in series:
            cells = [f"{median(steps.milliseconds[name]):.2f}" for name in names]
            cells += [str(ratio_of(steps.milliseconds[other], steps.milliseconds[first])) for other in others]
            label = steps.rows if title == "rows" else f"{steps.begin} - {steps.end}"
            lines.append(f"| {label} | {' | '.join(cells)} |")
        lines.append("")
    growth = {name: _growth(times.by_length, name) for name in names}
    lines += [
        f"{name}: a step at the last length takes {factor} times one at the first" for name, factor in growth.items()
    ]
    lines += [f"{name}: not run: {reason}" for name, reason in times.not_run.items()]
    machine = times.machine
    lines += ["", f"{machine.cpu}, {machine.usable_cpus} usable processors, {machine.date}"]
    return "\n".join(lines) + "\n"


def _growth(series: list[Steps], name: str) -> Ratio:
    return ratio_of(series[-1].milliseconds[name], series[0].milliseconds[name])


if __name__ == "__main__":
    typer.run(main)
