"""FastAPI and slimt: `python -m benchmarks.servers.slimt_server --checkpoint FOLDER --python PYTHON ...`."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue

from benchmarks.servers.application import Service, arguments, serve
from benchmarks.servers.batching import BatchOptions, Deliver
from benchmarks.servers.pieces import Pieces, Tokenizer

_CHILD = Path(__file__).with_name("slimt_process.py")
_MAX_TOKENS = 512


class SlimtEngine:
    """Processes of slimt, each with a service of several workers, which divides a call into batches by length."""

    def __init__(self, python: Path, folder: Path, processes: int, workers: int) -> None:
        (model,), (vocabulary,), (shortlist,) = map(folder.glob, ("model.*.bin", "vocab.*.spm", "lex.*.bin"))
        command = [str(python), str(_CHILD), str(model), str(vocabulary), str(shortlist), str(workers)]
        self._idle: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
        for _ in range(processes):
            pipe = subprocess.PIPE
            self._idle.put(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True))  # noqa: S603 - the caller's

    def translate(self, sentences: Sequence[Pieces], beam_size: int, deliver: Deliver) -> None:
        """Translate greedily. All sentences are delivered at the end: `translate` of slimt returns when all are done.

        The pieces of an answer are its words, because slimt returns text.
        """
        if beam_size != 1:
            raise ValueError("slimt has no beam search")
        child = self._idle.get()
        assert child.stdin is not None
        assert child.stdout is not None
        texts = ["".join(sentence[:-1]).replace("▁", " ").strip() for sentence in sentences]
        child.stdin.write(json.dumps(texts) + "\n")
        child.stdin.flush()
        answers = json.loads(child.stdout.readline())
        self._idle.put(child)
        for index, answer in enumerate(answers):
            deliver(index, [f"▁{word}" for word in answer.split()])


def main() -> None:
    """Load a model in Marian's binary format and serve it."""
    parser = arguments("FastAPI and slimt behind a batching queue.")
    parser.add_argument("--python", required=True, help="an interpreter with slimt 0.1.0")
    parser.add_argument("--processes", type=int, default=2, help="number of batches translated at once")
    parser.add_argument("--workers", type=int, default=1, help="threads per process")
    chosen = parser.parse_args()
    folder = Path(chosen.checkpoint)
    (vocabulary,) = folder.glob("vocab.*.spm")
    tokenizer = Tokenizer(vocabulary, vocabulary, _MAX_TOKENS)
    engine = SlimtEngine(Path(chosen.python), folder, chosen.processes, chosen.workers)
    options = BatchOptions(chosen.max_batch, chosen.window_ms / 1000, chosen.processes, chosen.max_waiting)
    service = Service(
        tokenizer, engine, options, chosen.language, chosen.default_beam_size, limits_to_source_length=True
    )
    serve(service, chosen.port)


if __name__ == "__main__":
    main()
