"""Memory of the export and of the engine processes of a large model with random weights.

    python -m benchmarks.engines.memory nllb-600m [--precision int8] [--folder FOLDER]

Prints the peak memory of `kvasir export`, its own and with the files that it maps, and the proportional share (PSS) of
one and of two engine processes, which have the weights of the bundle in common.
"""

import multiprocessing
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer

from benchmarks.engines.random_checkpoints import SIZES, RandomCheckpoint, write_checkpoint
from benchmarks.machine import describe_machine
from benchmarks.paths import ROOT

_MEGABYTE = 2**20
_MAX_ROWS = 32
_SECONDS_BETWEEN = 0.05


def _memory(pid: int | Literal["self"]) -> dict[str, float]:
    """Return RSS, PSS and private memory of a process in megabytes."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()[1:]
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    private = kilobytes["Private_Dirty"] + kilobytes["Private_Clean"]
    return {"rss": kilobytes["Rss"] / 1024, "pss": kilobytes["Pss"] / 1024, "private": private / 1024}


def _anonymous(pid: int) -> float:
    """Return the resident memory of a process in megabytes without files that it maps; 0 after its end."""
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) / 1024


def _run_engine(connection: Connection, folder: Path) -> None:
    # Imported in the process: its parent has none of them.
    from benchmarks.in_process import InProcessEngine
    from bundle.loading import load_bundle
    from server.interface.request import SentenceParams

    started = time.monotonic()
    engine = InProcessEngine(load_bundle(folder, verify_digests=False), max_rows=_MAX_ROWS)
    connection.send(("loaded", time.monotonic() - started, _memory("self")))
    source = np.append(np.arange(3, 35, dtype=np.int32), np.int32(1))
    params = SentenceParams(beam_size=1, max_new_tokens=8)
    engine.decode([source] * 4, params)
    connection.send(("decoded", time.monotonic() - started, _memory("self")))
    connection.recv()
    connection.send(("end", time.monotonic() - started, _memory("self")))


@contextmanager
def _engine(folder: Path) -> Iterator[Connection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_run_engine, args=(theirs, folder))
    process.start()
    try:
        yield ours
    finally:
        ours.send(None)
        process.join()


def _report(what: str, figures: tuple[str, float, dict[str, float]]) -> dict[str, float]:
    name, seconds, memory = figures
    shown = ", ".join(f"{key} {value:.0f} MB" for key, value in memory.items())
    print(f"{what}, {name} after {seconds:.1f} s: {shown}", flush=True)
    return memory


def _export(made: RandomCheckpoint, bundle: Path, precision: str) -> None:
    command = [sys.executable, "-m", "kvasir", "export", "--config", str(made.config), str(made.weights), str(bundle)]
    started = time.monotonic()
    own = 0.0
    with subprocess.Popen([*command, "--precision", precision], cwd=ROOT) as process:  # noqa: S603 - our own command
        while process.poll() is None:
            own = max(own, _anonymous(process.pid))
            time.sleep(_SECONDS_BETWEEN)
    if process.returncode:
        raise SystemExit(process.returncode)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    size = sum(file.stat().st_size for file in bundle.iterdir()) / _MEGABYTE
    weights = made.weights.stat().st_size / _MEGABYTE
    print(f"checkpoint {weights:.0f} MB of {made.num_parameters:,} parameters; bundle {size:.0f} MB", flush=True)
    print(
        f"export: peak {own:.0f} MB of its own, {own / weights:.2f} times the checkpoint, and {peak:.0f} MB with "
        f"mapped files, in {time.monotonic() - started:.0f} s",
        flush=True,
    )


def main(
    size: Annotated[str, typer.Argument(help=f"one of {', '.join(SIZES)}")],
    precision: Annotated[str, typer.Option(help="int8 or float32")] = "int8",
    folder: Annotated[
        Path | None, typer.Option(help="folder for the files, which are kept; by default temporary")
    ] = None,
) -> None:
    """Measure the memory of export and engines."""
    if size not in SIZES:
        raise typer.BadParameter(f"`size` must be one of {', '.join(SIZES)}. Given: {size}")
    kept = Path(tempfile.mkdtemp()) if folder is None else folder
    try:
        print(describe_machine())
        bundle = kept / f"{size}-{precision}"
        if not bundle.exists():
            made = write_checkpoint(size, kept)
            _export(made, bundle, precision)
            made.weights.unlink()
        total = sum(file.stat().st_size for file in bundle.iterdir()) / _MEGABYTE
        with _engine(bundle) as first:
            _report("first engine", first.recv())
            alone = _report("first engine", first.recv())
            print(f"first engine: {alone['rss'] / total:.2f} times the bundle of {total:.0f} MB", flush=True)
            with _engine(bundle) as second:
                _report("second engine", second.recv())
                both = _report("second engine", second.recv())
                print(f"one engine more: {both['private']:.0f} MB of its own", flush=True)
    finally:
        if folder is None:
            shutil.rmtree(kept)


if __name__ == "__main__":
    typer.run(main)
