"""FastAPI and `generate`: `python -m benchmarks.servers.hugging_face_server --checkpoint FOLDER --port N`."""

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import MarianMTModel

from benchmarks.servers.application import Service, add_token_limits, arguments, serve
from benchmarks.servers.batching import BatchOptions, Deliver
from benchmarks.servers.texts import END, PADDING, UNKNOWN, Pieces, TargetLimit, Tokenizer


class HuggingFaceEngine:
    """`generate` in inference mode, in batches of similar length with at most `max_batch_tokens` padded tokens."""

    def __init__(
        self,
        checkpoint: Path,
        limit: TargetLimit,
        dtype: str = "float32",
        threads: int = 1,
        max_batch_tokens: int = 1024,
    ) -> None:
        torch.set_num_threads(threads)
        self._model = MarianMTModel.from_pretrained(checkpoint, dtype=getattr(torch, dtype)).eval()
        self.numbers: dict[str, int] = json.loads((checkpoint / "vocab.json").read_text("utf-8"))
        self._names = {number: piece for piece, number in self.numbers.items()}
        self._limit = limit
        self._max_batch_tokens = max_batch_tokens

    def translate(self, sentences: Sequence[Pieces], beam_size: int, deliver: Deliver) -> None:
        """Translate; each sentence is delivered when its batch is complete."""
        start = 0
        while start < len(sentences):
            size = max(1, self._max_batch_tokens // len(sentences[start]))  # the longest come first
            for index, target in enumerate(self._generate(sentences[start : start + size], beam_size), start):
                deliver(index, target)
            start += size

    def _generate(self, batch: Sequence[Pieces], beam_size: int) -> list[Pieces]:
        padding, unknown = self.numbers[PADDING], self.numbers[UNKNOWN]
        longest = len(batch[0])
        ids = [[self.numbers.get(piece, unknown) for piece in sentence] for sentence in batch]
        tokens = torch.tensor([row + [padding] * (longest - len(row)) for row in ids])  # [sentences, longest]
        with torch.inference_mode():
            generated = self._model.generate(
                input_ids=tokens,
                attention_mask=(tokens != padding).long(),
                num_beams=beam_size,
                do_sample=False,
                max_length=self._limit.of(longest),
            )
        pieces = [[self._names[token] for token in row] for row in generated[:, 1:].tolist()]
        return [row[: row.index(END)] if END in row else row for row in pieces]


def main() -> None:
    """Load a checkpoint and serve it."""
    parser = arguments("FastAPI and Hugging Face generate behind a batching queue.")
    add_token_limits(parser)
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    checkpoint = Path(chosen.checkpoint)
    tokenizer = Tokenizer.of_checkpoint(checkpoint)
    limit = TargetLimit(tokenizer.max_tokens, chosen.target_factor)
    engine = HuggingFaceEngine(checkpoint, limit, chosen.dtype, chosen.threads, chosen.max_batch_tokens)
    options = BatchOptions(chosen.max_batch, chosen.window_ms / 1000, 1, chosen.max_waiting)
    serve(Service(tokenizer, engine, options, chosen.language, chosen.default_beam_size), chosen.port)


if __name__ == "__main__":
    main()
