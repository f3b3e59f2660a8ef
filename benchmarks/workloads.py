"""Workloads: sentences of a file for a real checkpoint, or random tokens decoded to a fixed length."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
import typer

from benchmarks.workers.protocol import Job
from bundle.loading import Bundle
from server.text.tokenizers.tokenizer import Tokenizer

Search = Literal["greedy", "beam4", "contract"]
BEAM_SIZES: dict[Search, int] = {"greedy": 1, "beam4": 4, "contract": 4}
TITLES: dict[Search, str] = {"greedy": "greedy", "beam4": "beam 4", "contract": "beam 4, batches of 32"}

# Terms of the figures in CTranslate2's README: beam 4, at most 32 sentences per batch, no length penalty.
CONTRACT_SENTENCES = 32
CONTRACT_LENGTH_PENALTY = 0.0

OPUS_VOCAB_SIZE = 58101  # of an OPUS-MT model, and of the random one of its size
FORCED_SOURCE_LENGTHS = (8, 40)  # shortest and longest, the end-of-sequence token included


@dataclass(frozen=True, slots=True)
class Workload:
    """Sentences and decoding options, equal for every engine.

    `forced_length` is the number of tokens of every answer if the model never ends. `sentences_at_once` is set if the
    terms fix the batch; otherwise each engine uses its best batch size.
    """

    name: str
    model: str
    sources: list[list[int]]
    beam_size: int
    max_new_tokens: int
    length_penalty: float = 1.0
    references: list[str] | None = None
    forced_length: int | None = None
    sentences_at_once: int | None = None

    def job(self, *, return_outputs: bool = False) -> Job:
        """Return the whole workload as a job, without batch sizes."""
        return self._job(self.sources, return_outputs)

    def sample(self, num_sentences: int) -> Job:
        """Return at most that many sentences, evenly spaced, as a job for warm-up and tuning."""
        indices = np.linspace(0, len(self.sources) - 1, min(num_sentences, len(self.sources))).round().astype(int)
        return self._job([self.sources[index] for index in indices.tolist()], return_outputs=False)

    def _job(self, sources: list[list[int]], return_outputs: bool) -> Job:
        return Job(
            sources=sources,
            beam_size=self.beam_size,
            max_new_tokens=self.max_new_tokens,
            length_penalty=self.length_penalty,
            return_outputs=return_outputs,
        )


def read_lines(file: Path, limit: int | None = None) -> list[str]:
    """Return the first lines of a file without their ends. Unicode line separators do not end a line."""
    with file.open(encoding="utf-8") as lines:
        return [line.rstrip("\n") for line in islice(lines, limit)]


def target_language(bundle: Bundle, chosen: str | None) -> str:
    """Return the target language that sources are encoded for. Raises `typer.BadParameter` if `chosen` is none of them.

    `chosen` may be None if the bundle has one target language.
    """
    languages = bundle.config.target_languages
    if chosen is None and len(languages) == 1:
        return languages[0]
    if chosen not in languages:
        known = ", ".join(languages)
        raise typer.BadParameter(
            f"`--target` must be a target language of {bundle.config.name}: {known}. Given: {chosen}"
        )
    return chosen


def text_workload(
    model: str, tokenizer: Tokenizer, file: Path, limit: int | None, search: Search, max_tokens: int, target: str
) -> Workload:
    """Return a workload of a file's sentences, one per line; a second column, after a tab, contains the references.

    A model with `max_tokens` positions takes that many source tokens, including the end, and generates one fewer,
    because Hugging Face counts the start token. Longer sentences are cut for every engine.
    """
    lines = [line.split("\t") for line in read_lines(file, limit)]
    tokens = [tokenizer.encode(line[0], target).tolist() for line in lines]
    is_contract = search == "contract"
    return Workload(
        name=f"{file.name.split('.')[0]}, {TITLES[search]}",
        model=model,
        sources=[source[: max_tokens - 1] + source[-1:] if len(source) > max_tokens else source for source in tokens],
        beam_size=BEAM_SIZES[search],
        max_new_tokens=max_tokens - 1,
        length_penalty=CONTRACT_LENGTH_PENALTY if is_contract else 1.0,
        references=[line[1] for line in lines] if all(len(line) > 1 for line in lines) else None,
        sentences_at_once=CONTRACT_SENTENCES if is_contract else None,
    )


def random_sources(random: np.random.Generator, lengths: Sequence[int], vocab_size: int) -> list[list[int]]:
    """Return random token ids of these lengths for the models of `benchmarks.engines.endless_checkpoints`.

    Token 0 ends the sequence, 1 is the unknown token, and the last token of the vocabulary is padding.
    """
    return [[*random.integers(2, vocab_size - 1, length - 1).tolist(), 0] for length in lengths]


def forced_workload(
    model: str, vocab_size: int, num_sentences: int, num_tokens: int, search: Search, seed: int = 1
) -> Workload:
    """Return a workload of random tokens for a model that never ends: every answer has `num_tokens` tokens."""
    random = np.random.default_rng(seed)
    lengths = random.integers(FORCED_SOURCE_LENGTHS[0], FORCED_SOURCE_LENGTHS[1], num_sentences, endpoint=True)
    is_contract = search == "contract"
    return Workload(
        name=f"{model}, {TITLES[search]}",
        model=model,
        sources=random_sources(random, lengths.tolist(), vocab_size),
        beam_size=BEAM_SIZES[search],
        max_new_tokens=num_tokens,
        length_penalty=CONTRACT_LENGTH_PENALTY if is_contract else 1.0,
        forced_length=num_tokens,
        sentences_at_once=CONTRACT_SENTENCES if is_contract else None,
    )
