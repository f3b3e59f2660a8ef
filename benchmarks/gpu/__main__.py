"""Decoding speed on a GPU by number of rows, compared with the memory bandwidth and Hugging Face.

    python -m benchmarks.gpu [--size opus --size nllb] [--rows 1 --rows 256 ...] [--output FOLDER]
    python -m benchmarks.gpu --device cpu --size tiny --rows 2     test the code without a GPU

Writes gpu.json and gpu.md. Models are random and never end a sentence. A missing figure has its reason in `not_run`.
"""

import argparse
import json
import platform
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import onnxruntime as ort

from benchmarks.gpu import hugging_face, measuring
from benchmarks.gpu.measuring import SOURCE_TOKENS, Window
from benchmarks.gpu.models import SIZES, Size, cache_bytes, make_bundle, open_bundle, weight_bytes
from benchmarks.progress import log_progress
from bundle.loading import Bundle
from bundle.manifest import MANIFEST_FILE
from server.engine.runners.device.sessions import DeviceSessions

ALL_ROWS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
HUGGING_FACE_ROWS = [64, 256, 1024]
BEAM_SIZE = 4
# Name, CUDA graphs, steps ahead of the host, candidates.
_STEPS = (
    ("greedy", True, True, 1),
    ("greedy, waits for the host", True, False, 1),
    ("greedy, no graphs", False, False, 1),
    ("with candidates and scores", True, False, 2 * BEAM_SIZE),
)


@dataclass(slots=True)
class Row:
    """Figures of one model with one number of rows; milliseconds are per step."""

    model: str
    rows: int
    floor_ms: float
    milliseconds: dict[str, float] = field(default_factory=dict)
    tokens_per_second: dict[str, float] = field(default_factory=dict)
    not_run: dict[str, str] = field(default_factory=dict)

    def note(self, figures: dict[str, float], name: str, measure: Callable[[], float]) -> None:
        """Measure a figure. A failure is recorded and does not affect the others."""
        log_progress(f"{self.model} {self.rows} rows: {name}")
        try:
            figures[name] = measure()
        except Exception as error:  # noqa: BLE001 - out of memory, mostly
            self.not_run[name] = f"{type(error).__name__}: {error}".splitlines()[0][:300]


def measure(
    bundle: Bundle, size: Size, device: str, all_rows: list[int], window: Window, bandwidth: float, *, compiled: bool
) -> list[Row]:
    """Return all figures of one model."""
    memory = measuring.open_memory(device)
    sessions = DeviceSessions.open(bundle, memory)
    weights = weight_bytes(bundle)
    found = []
    for rows in all_rows:
        live = rows * cache_bytes(bundle, (window.begin + window.end) / 2, SOURCE_TOKENS)
        row = Row(bundle.config.name, rows, (weights + live) / bandwidth * 1e3)
        step = partial(measuring.step_milliseconds, sessions, rows, window)
        for name, captures, runs_ahead, candidates in _STEPS:
            action = partial(step, captures=captures, runs_ahead=runs_ahead, num_candidates=candidates)
            row.note(row.milliseconds, name, action)
        for beam_size in (1, BEAM_SIZE):
            if beam_size > rows:
                continue
            kind = "greedy" if beam_size == 1 else f"beam {beam_size}"
            rates = row.tokens_per_second
            row.note(rates, kind, partial(measuring.tokens_per_second, sessions, rows, beam_size, window))
            if rows in HUGGING_FACE_ROWS or rows == all_rows[-1]:
                theirs = partial(hugging_face.tokens_per_second, size, device, rows, beam_size, window)
                row.note(rates, f"Hugging Face {kind}", partial(theirs, compiled=False))
                if compiled:
                    row.note(rates, f"Hugging Face {kind}, compiled", partial(theirs, compiled=True))
        found.append(row)
    return found


def render(rows: list[Row], about: dict[str, str | float]) -> str:
    """Return a table per model: milliseconds, share of the minimum, tokens per second."""
    lines = [f"{name}: {value}" for name, value in about.items()]
    for model in dict.fromkeys(row.model for row in rows):
        ours = [row for row in rows if row.model == model]
        steps = list(dict.fromkeys(name for row in ours for name in row.milliseconds))
        rates = list(dict.fromkeys(name for row in ours for name in row.tokens_per_second))
        columns = [
            "rows",
            "floor ms",
            *(f"{name} ms" for name in steps),
            "of the floor",
            *(f"{n} tok/s" for n in rates),
        ]
        lines += ["", f"**{model}**", "", f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
        for row in ours:
            greedy = row.milliseconds.get("greedy")
            cells = [str(row.rows), f"{row.floor_ms:.3f}"]
            cells += [f"{row.milliseconds[name]:.3f}" if name in row.milliseconds else "" for name in steps]
            cells.append(f"{row.floor_ms / greedy:.0%}" if greedy else "")
            cells += [f"{row.tokens_per_second[n]:,.0f}" if n in row.tokens_per_second else "" for n in rates]
            lines.append(f"| {' | '.join(cells)} |")
        lines += [f"{row.rows} rows, not run: {name}: {why}" for row in ours for name, why in row.not_run.items()]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Measure, and write gpu.json and gpu.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--size", action="append", choices=SIZES, help="default: opus and nllb")
    parser.add_argument("--rows", action="append", type=int, help=f"default: {ALL_ROWS}")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--begin", type=int, default=16, help="first token of the timed steps")
    parser.add_argument("--end", type=int, default=48, help="last token of the timed steps")
    parser.add_argument("--compiled", action="store_true", help="also measure Hugging Face with torch.compile")
    parser.add_argument("--models", type=Path, help="folder of the models; default: temporary")
    parser.add_argument("--output", type=Path, default=Path("build/bench"))
    options = parser.parse_args(arguments)
    window = Window(options.begin, options.end, options.repetitions, options.end - options.begin)
    on_gpu = options.device == "cuda"
    bandwidth = measuring.copy_bandwidth(on_gpu)
    about: dict[str, str | float] = {
        "device": _device_name() if on_gpu else f"host, {platform.machine()}",
        "onnxruntime": ort.__version__,
        "copy bandwidth, GB/s": round(bandwidth / 1e9),
        "steps": f"tokens {options.begin} to {options.end}, {SOURCE_TOKENS} source tokens",
    }
    options.output.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.size or ["opus", "nllb"]:
            folder = (options.models or Path(temporary)) / name
            made = (folder / MANIFEST_FILE).exists()
            bundle = open_bundle(folder) if made else make_bundle(SIZES[name], folder, "float16")
            rows += measure(
                bundle,
                SIZES[name],
                options.device,
                options.rows or ALL_ROWS,
                window,
                bandwidth,
                compiled=options.compiled,
            )
            # After every model, so that an interrupted run keeps its results.
            content = {"about": about, "rows": [asdict(row) for row in rows]}
            (options.output / "gpu.json").write_text(json.dumps(content, indent=2) + "\n", "utf-8")
            (options.output / "gpu.md").write_text(render(rows, about), "utf-8")
    print(render(rows, about))


def _device_name() -> str:
    import torch

    return str(torch.cuda.get_device_name())


if __name__ == "__main__":
    main()
