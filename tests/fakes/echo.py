"""Model that answers with its source: a real tokenizer, and an engine that returns every sentence."""

import asyncio
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import sentencepiece

from bundle.loading import Bundle
from bundle.manifest import (
    SOURCE_SENTENCEPIECE_FILE,
    TARGET_SENTENCEPIECE_FILE,
    VOCABULARY_FILE,
    BundleConfig,
    Provenance,
    Shapes,
    SpecialTokens,
)
from server.interface.errors import QueueFull
from server.interface.request import Completion, FinishReason, Hypothesis, Request

SENTENCES = (
    "Good morning. How are you today?",
    "The quick brown fox jumps over the lazy dog.",
    "I would like a cup of tea, please; and she would like a glass of water.",
    "Where is the railway station? It is 300 metres from here.",
    "Guten Morgen. Wie geht es Ihnen heute?",
    "Ich möchte bitte eine Tasse Tee, und sie möchte ein Glas Wasser.",
    "Wo ist der Bahnhof? Er ist 300 Meter von hier.",
    "Größe, Übermut & Ärger: (nicht) „wahr“!",
)
MAX_TOKENS = 32


def make_bundle(
    folder: Path,
    extra_pieces: Sequence[str] = (),
    languages: tuple[str, str] = ("en", "de"),
    sentences: Sequence[str] = SENTENCES,
) -> Bundle:
    """Return a bundle without graphs. `extra_pieces` follow the tokens that SentencePiece learned of the sentences."""
    stream = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=stream,
        vocab_size=100 if sentences is SENTENCES else 200,
        character_coverage=1.0,
        byte_fallback=False,
        minloglevel=2,
        num_threads=1,
    )
    model = sentencepiece.SentencePieceProcessor(model_proto=stream.getvalue())
    for name in (SOURCE_SENTENCEPIECE_FILE, TARGET_SENTENCEPIECE_FILE):
        (folder / name).write_bytes(stream.getvalue())
    learned = [model.id_to_piece(id_) for id_ in range(model.get_piece_size())]
    pieces = ["</s>", "<unk>", *(p for p in learned if p not in {"</s>", "<unk>", "<s>"}), *extra_pieces, "<pad>"]
    vocabulary = {piece: id_ for id_, piece in enumerate(pieces)}
    (folder / VOCABULARY_FILE).write_text(json.dumps(vocabulary), encoding="utf-8")
    padding = vocabulary["<pad>"]
    return Bundle(folder, _config(len(pieces), padding, languages))


def _config(vocab_size: int, padding: int, languages: tuple[str, str]) -> BundleConfig:
    return BundleConfig(
        name=f"echo-{languages[0]}-{languages[1]}",
        source_languages=(languages[0],),
        target_languages=(languages[1],),
        precision="float32",
        shapes=Shapes(
            vocab_size=vocab_size,
            target_vocab_size=vocab_size,
            d_model=8,
            num_encoder_layers=1,
            num_decoder_layers=1,
            num_heads=1,
            head_dim=8,
            max_source_tokens=MAX_TOKENS,
            max_target_tokens=MAX_TOKENS,
        ),
        attention_scale=1.0,
        special_tokens=SpecialTokens(end_of_sequence=0, padding=padding, decoder_start=padding, unknown=1),
        encoder_inputs=(),
        encoder_outputs=(),
        decoder_inputs=(),
        decoder_outputs=(),
        provenance=Provenance(source="a test", family="marian", weights_sha256="", num_parameters=1, exporter="a test"),
        files={},
    )


@dataclass(frozen=True, slots=True)
class EchoStatus:
    """Status set by a test."""

    waiting: int = 0
    running: int = 0
    unfinished: int = 0
    rows_in_use: int = 0
    rows: int = 64
    heartbeat_age_seconds: float = 0.0
    has_engine: bool = True
    draining: bool = False


@dataclass
class EchoGenerator:
    """Engine that answers with the source's tokens, once `gate` is open.

    The i-th hypothesis lacks the last i tokens; its log-probability is -(i + 1), and so is its score.
    """

    bundle: Bundle
    error: Exception | None = None
    finish_reason: FinishReason = FinishReason.STOP
    shown_status: EchoStatus = EchoStatus()
    gate: asyncio.Event | None = None
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    batches: list[list[Request]] = field(default_factory=list)
    num_cancelled: int = 0
    is_closed: bool = False

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Return the echo, or raise the error set by the test."""
        self.batches.append(list(requests))
        self.entered.set()
        try:
            if self.gate is not None:
                await self.gate.wait()
        except asyncio.CancelledError:
            self.num_cancelled += len(requests)
            raise
        if self.error is not None:
            raise self.error
        return [self._complete(request) for request in requests]

    def check_admission(self) -> None:
        """Refuse as `generate` does."""
        if isinstance(self.error, QueueFull):
            raise self.error

    def status(self) -> EchoStatus:
        """Return the status set by the test."""
        return self.shown_status

    async def drain(self, timeout_seconds: float) -> bool:
        """Return True, unless the timeout is negative: no request remains."""
        return timeout_seconds >= 0

    def close(self) -> None:
        """Record that it was closed."""
        self.is_closed = True

    def _complete(self, request: Request) -> Completion:
        arrived = request.timings.arrived
        request.timings.admitted = arrived + 0.001
        request.timings.encoded = arrived + 0.003
        request.timings.assigned = arrived + 0.003
        request.timings.first_token = arrived + 0.004
        request.timings.finished = arrived + 0.010
        if self.finish_reason in (FinishReason.DEADLINE, FinishReason.CANCELLED):
            return Completion(request, [], self.finish_reason)
        tokens = request.source[:-1].tolist()
        hypotheses = [
            Hypothesis(tokens[: len(tokens) - rank], -rank - 1.0, -rank - 1.0, self.finish_reason)
            for rank in range(request.params.num_hypotheses)
        ]
        return Completion(request, hypotheses, self.finish_reason)


EchoFor = Callable[[str, str], EchoGenerator]  # source and target language
