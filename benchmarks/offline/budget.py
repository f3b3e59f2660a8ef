"""Processor time of `kvasir translate` by part: `python -m benchmarks.offline.budget BUNDLE FILE [--beam-size 4]`.

One engine translates all lines on the calling thread. Each part is a few functions of Kvasir that are wrapped by a
clock; time in another part that they call counts for that one only. The table has milliseconds, shares, and
microseconds a line. The clocks add one microsecond a call.
"""

import io
import time
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import cast

import typer

from bundle.loading import load_bundle
from server.cli.offline_options import OfflineOptions
from server.cli.translate.blocks import BlockTranslator
from server.cli.translate.lines import translate_file
from server.engine.batch import Batch
from server.engine.decoding.beam_search import BeamSearch
from server.engine.decoding.constrained import ConstrainedBeamSearch
from server.engine.decoding.greedy_search import GreedySearch
from server.engine.decoding.native_search import NativeBeamSearch, NativeGreedySearch, RowSearch
from server.engine.decoding.request_decoder import RequestDecoder
from server.engine.engine import Engine
from server.engine.kv_cache import KVCache
from server.engine.runners.onnx import OnnxRunner
from server.interface.decoding_options import DecodingOptions
from server.text.tokenizers.marian import MarianTokenizer
from server.translation import pipeline
from server.translation.attempts import Attempts
from server.translation.reading import TextReader

OTHER = "event loop, calls and sentence cache"
PARTS: tuple[tuple[str, object, tuple[str, ...]], ...] = (
    ("decoder graph", OnnxRunner, ("decode",)),
    ("encoder graph", OnnxRunner, ("encode",)),
    ("rows of the cache", KVCache, ("begin", "advance", "close_holes", "release")),
    ("greedy and beam search", GreedySearch, ("add", "advance", "hypotheses", "remove")),
    ("greedy and beam search", BeamSearch, ("add", "advance", "hypotheses", "remove")),
    ("greedy and beam search", NativeGreedySearch, ("add", "hypotheses", "remove")),
    ("greedy and beam search", NativeBeamSearch, ("add", "hypotheses", "remove")),
    ("greedy and beam search", RowSearch, ("step", "advance")),
    ("search with required phrases, options", ConstrainedBeamSearch, ("add", "advance", "hypotheses", "remove")),
    ("search with required phrases, options", RequestDecoder, ("of", "replace_candidates", "annotate")),
    ("rest of the engine", Batch, ("add", "advance")),
    ("rest of the engine", Engine, ("step",)),
    ("tokenize", MarianTokenizer, ("encode", "encode_all", "count_tokens")),
    ("detokenize", MarianTokenizer, ("decode",)),
    ("read, segment", TextReader, ("_read_all",)),
    ("mask, encode", Attempts, ("_encode_all", "_encode_again")),
    ("restore", Attempts, ("_restore_all",)),
    ("check numbers", Attempts, ("_judge",)),
    ("assemble", pipeline, ("assemble",)),
    ("load the model", BlockTranslator, ("__init__",)),
    (OTHER, BlockTranslator, ("advance",)),
)


class Clocks:
    """Processor time of each part, without that of the parts that it calls."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._stack: list[str] = []
        self._last = time.thread_time()

    def _lap(self) -> None:
        now = time.thread_time()
        if self._stack:
            self.seconds[self._stack[-1]] += now - self._last
        self._last = now

    def wrap(self, part: str, owner: object, name: str) -> None:
        """Replace a function of a class or module by one with a clock."""
        inner = vars(owner)[name]
        is_classmethod = isinstance(inner, classmethod)
        function = cast(Callable[..., object], inner.__func__ if is_classmethod else inner)

        @wraps(function)
        def timed(*args: object, **kwargs: object) -> object:
            with self.part(part):
                return function(*args, **kwargs)

        setattr(owner, name, classmethod(timed) if is_classmethod else timed)

    def part(self, part: str) -> "_Part":
        """Return a context whose time counts for a part."""
        return _Part(self, part)


class _Part:
    def __init__(self, clocks: Clocks, part: str) -> None:
        self._clocks, self._part = clocks, part

    def __enter__(self) -> None:
        self._clocks._lap()
        self._clocks._stack.append(self._part)

    def __exit__(self, *_: object) -> None:
        self._clocks._lap()
        self._clocks._stack.pop()


def main(bundle: Path, file: Path, beam_size: int = 1, limit: int | None = None) -> None:
    """Translate all lines once, and print the processor time of each part."""
    clocks = Clocks()
    for part, owner, names in PARTS:
        for name in names:
            clocks.wrap(part, owner, name)
    lines = "\n".join(file.read_text("utf-8").split("\n")[:limit]).encode()
    options = OfflineOptions(decoding=DecodingOptions(beam_size=beam_size), threads=1)
    with clocks.part("input, blocks and output"):
        stats = translate_file([load_bundle(bundle)], io.BytesIO(lines), io.BytesIO(), options)
    whole = sum(clocks.seconds.values())
    print(f"{stats.lines} lines, {stats.decoded} sentences decoded, {stats.steps} steps, "
          f"{stats.rows_per_step:.0f} rows a step\n")  # fmt: skip
    print("| part | ms | share | us a line |\n|---|---|---|---|")
    parts = sorted(clocks.seconds.items(), key=lambda each: -each[1])
    for part, seconds in [*parts, ("all", whole)]:
        print(f"| {part} | {seconds * 1e3:.0f} | {seconds / whole:.1%} | {seconds * 1e6 / stats.lines:.0f} |")


if __name__ == "__main__":
    typer.run(main)
