"""FastAPI and CTranslate2: `python -m benchmarks.servers.ctranslate2_server --checkpoint FOLDER --model FOLDER ...`."""

from collections.abc import Sequence
from pathlib import Path

import ctranslate2

from benchmarks.servers.application import Service, add_token_limits, arguments, serve
from benchmarks.servers.batching import BatchOptions, Deliver
from benchmarks.servers.texts import Pieces, TargetLimit, Tokenizer


class CTranslate2Engine:
    """A translator with `inter_threads` workers of `intra_threads` threads.

    It divides the sentences of a call into batches of `max_batch_tokens` padded source tokens.
    """

    def __init__(
        self,
        model: Path,
        limit: TargetLimit,
        compute_type: str = "int8",
        inter_threads: int = 1,
        intra_threads: int = 1,
        max_batch_tokens: int = 1024,
    ) -> None:
        self._translator = ctranslate2.Translator(
            str(model),
            device="cpu",
            compute_type=compute_type,
            inter_threads=inter_threads,
            intra_threads=intra_threads,
        )
        self._max_batch_tokens = max_batch_tokens
        self._limit = limit

    def translate(self, sentences: Sequence[Pieces], beam_size: int, deliver: Deliver) -> None:
        """Translate; each sentence is delivered when its batch is complete, not the whole call."""
        results = self._translator.translate_batch(
            list(sentences),
            beam_size=beam_size,
            max_batch_size=self._max_batch_tokens,
            batch_type="tokens",
            max_decoding_length=self._limit.of(len(sentences[0])),  # the longest comes first
            max_input_length=0,
            asynchronous=True,
        )
        # In the order of CTranslate2's batches, which it sorts by length.
        for index, result in enumerate(results):
            deliver(index, result.result().hypotheses[0])


def main() -> None:
    """Load a converted model and serve it."""
    parser = arguments("FastAPI and CTranslate2's asynchronous translator behind a batching queue.")
    add_token_limits(parser)
    parser.add_argument("--model", required=True, help="the checkpoint converted by CTranslate2")
    parser.add_argument("--compute-type", default="int8")
    parser.add_argument("--inter-threads", type=int, default=2, help="number of batches translated at once")
    parser.add_argument("--intra-threads", type=int, default=1, help="threads per batch")
    parser.add_argument("--batches-ahead", type=int, default=0, help="number of batches submitted in advance")
    chosen = parser.parse_args()
    tokenizer = Tokenizer.of_checkpoint(Path(chosen.checkpoint))
    engine = CTranslate2Engine(
        Path(chosen.model),
        TargetLimit(tokenizer.max_tokens, chosen.target_factor),
        chosen.compute_type,
        chosen.inter_threads,
        chosen.intra_threads,
        chosen.max_batch_tokens,
    )
    options = BatchOptions(
        chosen.max_batch,
        chosen.window_ms / 1000,
        chosen.inter_threads + chosen.batches_ahead,
        chosen.max_waiting,
    )
    serve(Service(tokenizer, engine, options, chosen.language, chosen.default_beam_size), chosen.port)


if __name__ == "__main__":
    main()
