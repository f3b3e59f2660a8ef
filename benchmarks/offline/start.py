"""The parts of starting: `kvasir translate` of one line, and `kvasir serve` until it is ready.

    python -m benchmarks.offline.start [--repetitions 7] [--floors benchmarks/offline/floors.toml]

Each repetition runs every program once, in a process of its own: Python, the imports that no start can do without, both
commands, and the steps of both. Processor time depends least on other load; that of `kvasir serve` is its main process,
which imports the application while an engine process loads. `-X importtime` slows imports down.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from benchmarks.machine import describe_machine, process_seconds, usable_cpus
from benchmarks.paths import DEFAULT_BUNDLE, ROOT

IMPORTS, TRANSLATE, SERVE = "import numpy, onnxruntime", "kvasir translate", "kvasir serve"
PORT = 18497
_LINE = "Where is the station?"
_BUNDLE = "from bundle.loading import load_bundle; bundle = load_bundle(Path(folder))"
_STEPS = {
    TRANSLATE: {
        "command line": "import kvasir_commands",
        "imports of packages": "import numpy, onnxruntime, pydantic, tokenizers, sentencepiece, regex, asyncio",
        "imports of the command": "from server.cli import command; from server.cli.translate import blocks",
        "bundle, with its digests": _BUNDLE,
        "tokenizer": "from server.text.tokenizers.registry import open_tokenizer; open_tokenizer(bundle)",
        "graphs, first sentence": "one = blocks.BlockTranslator([bundle], blocks.OfflineOptions(threads=1))",
        "translation": f"one.start(blocks.Block(0, [{_LINE!r}]))\nwhile not one.advance(): pass",
    },
    SERVE: {
        "command line": "import kvasir_commands",
        "settings": "from server.cli.settings_flags import names_and_settings; _, settings = names_and_settings([])",
        "imports before the engines": "import server.cli.serve",
        "bundle, with its digests": _BUNDLE,
        "imports of the application": "import server.cli.draining_server",
        "application": "from server.http.app import create_app; create_app(settings, [])",
    },
}
_TIMED_STEPS = """
import gc, json, sys, time
from pathlib import Path
import kvasir  # it sets variables of the environment
gc.disable()  # as both commands do
seconds, names = [], {"folder": sys.argv[1], "Path": Path}
for step in json.loads(sys.argv[2]):
    start = time.process_time()
    exec(step, names)
    seconds.append(time.process_time() - start)
print(json.dumps(seconds), flush=True)
"""


def main(
    bundle: Path = DEFAULT_BUNDLE,
    repetitions: Annotated[int, typer.Option(min=1)] = 7,
    floors: Annotated[Path | None, typer.Option(help="TOML file of floors; exit with 1 below one of them")] = None,
) -> None:
    """Print medians of all parts, and the ratio of the processor time of the imports to that of each command."""
    print(f"{describe_machine().cpu}, {usable_cpus()} processors, load before {describe_machine().load_before}")
    whole: dict[str, list[tuple[float, float]]] = defaultdict(list)
    steps: dict[str, list[list[float]]] = defaultdict(list)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as line:
        print(_LINE, file=line, flush=True)
        translate = ["-m", "kvasir", "translate", line.name, "--model", str(bundle)]
        for _ in range(repetitions):
            for name, program in {"python": ["-c", "pass"], IMPORTS: ["-c", IMPORTS], TRANSLATE: translate}.items():
                whole[name].append(_to_the_end(program))
            whole[SERVE].append(_to_ready(bundle))
            for name, each in _STEPS.items():
                ran = _run(["-c", _TIMED_STEPS, str(bundle), json.dumps([*each.values()])])
                steps[name].append(json.loads(ran.stdout))
        imports = _run(["-X", "importtime", *translate]).stderr
    for name, runs in whole.items():
        seconds, processor = map(median, zip(*runs, strict=True))
        print(f"{seconds:7.3f} s, processor {processor:6.3f} s  {name}")
    for name, timed in steps.items():
        print(f"\n{name}: processor time of its steps")
        for step, values in zip(_STEPS[name], zip(*timed, strict=True), strict=True):
            print(f"{median(values):7.3f} s  {step}")
    print(f"\n{TRANSLATE}: longest imports, with -X importtime\n{_by_package(imports)}\n")
    ratios = {
        name: median([base / own for (_, base), (_, own) in zip(whole[IMPORTS], whole[name], strict=True)])
        for name in (TRANSLATE, SERVE)
    }
    print("\n".join(f"{IMPORTS} / {name}, processor time: {ratio:.2f}" for name, ratio in ratios.items()))
    if floors is not None:
        least = tomllib.loads(floors.read_text("utf-8"))["start"]
        if missed := [name for name, floor in least.items() if ratios[name] < floor]:
            print("\n".join(f"below the floor of {least[name]}: {name}" for name in missed))
            raise typer.Exit(1)


def _run(program: Sequence[str]) -> subprocess.CompletedProcess[str]:
    one_thread = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # as `kvasir` sets it
    return subprocess.run(  # noqa: S603 - a program of this project
        [sys.executable, *program], cwd=ROOT, env=one_thread, capture_output=True, text=True, check=True
    )


def _to_the_end(program: Sequence[str]) -> tuple[float, float]:
    """Return seconds of a program and of processors."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    _run(program)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _to_ready(bundle: Path) -> tuple[float, float]:
    """Return seconds until a server is ready, and the processor time of its main process."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "kvasir", "serve", "--model", str(bundle), "--port", str(PORT)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as server:  # noqa: S603 - this project's
        while server.poll() is None:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health/ready").close()
                break
            except OSError:
                time.sleep(0.01)
        seconds, processor = time.perf_counter() - start, process_seconds(server.pid)
        server.terminate()
    return seconds, processor


def _by_package(log: str, num_shown: int = 12) -> str:
    """Return the packages with the longest imports of a log of `-X importtime`."""
    totals: dict[str, int] = defaultdict(int)
    for microseconds, _, module in (line.removeprefix("import time:").split("|") for line in log.splitlines()[1:]):
        parts = module.strip().split(".")
        totals[".".join(parts[: 2 if parts[0] == "server" else 1])] += int(microseconds)
    longest = sorted(totals.items(), key=lambda each: -each[1])[:num_shown]
    return "\n".join(f"{microseconds / 1e6:7.3f} s  {package}" for package, microseconds in longest)


if __name__ == "__main__":
    typer.run(main)
