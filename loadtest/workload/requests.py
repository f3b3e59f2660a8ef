"""The requests of a load test. Request n of a stage is the same in every process and run."""

import hashlib
import random
from bisect import bisect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from loadtest.workload.scenario import Scenario, ScenarioInvalid
from loadtest.workload.texts.lengths import length_distribution
from loadtest.workload.texts.sources import (
    ComposedSentences,
    CorpusSentences,
    SentenceSource,
    corpus_digest,
    corpus_lines,
    grammar_of,
)


@dataclass(frozen=True, slots=True)
class TextRequest:
    """One request to send. A paragraph is one text of several sentences; several texts are sent as a list.

    `beam_size` None selects the server's default. `hang_up_after_seconds` counts from sending to the client closing the
    connection; None for clients that wait. `options` are further fields in Kvasir's own protocol.
    """

    number: int
    kind: str
    protocol: str
    texts: tuple[str, ...]
    beam_size: int | None
    source: str
    target: str
    hang_up_after_seconds: float | None
    num_sentences: int
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_list(self) -> bool:
        """Whether the texts are sent as a list."""
        return len(self.texts) > 1

    @property
    def num_words(self) -> int:
        """Number of words of all texts, separated by white space."""
        return sum(len(text.split()) for text in self.texts)


def request_sequence(scenario: Scenario, seed: int, stage_name: str) -> Callable[[int], TextRequest]:
    """Return a function of n >= 0 to request n of a stage. It depends only on the scenario, the seed and the stage.

    An unknown `stage_name` is a step of the scenario's search. Raises `ScenarioInvalid` for unknown languages and
    lengths and for a missing corpus.
    """
    return _Sequence(scenario, seed, stage_name).request


def with_corpus_digest(scenario: Scenario) -> Scenario:
    """Return the scenario with the digest of its corpus, so that workers and comparisons detect other lines.

    Raises `ScenarioInvalid` if the corpus is missing or differs from the scenario's digest.
    """
    workload = scenario.workload
    if workload.corpus is None:
        return scenario
    try:
        digest = corpus_digest(workload.corpus)
    except ValueError as error:
        raise ScenarioInvalid(str(error)) from error
    if workload.corpus_sha256 not in (None, digest):
        raise ScenarioInvalid(
            f"corpus {workload.corpus} differs from the scenario's: its sha256 must be {workload.corpus_sha256}. "
            f"Given: {digest}"
        )
    return scenario.model_copy(update={"workload": workload.model_copy(update={"corpus_sha256": digest})})


class _Sequence:
    """Generator of one stage's requests. Each request has its own random generator."""

    def __init__(self, scenario: Scenario, seed: int, stage_name: str) -> None:
        workload = with_corpus_digest(scenario).workload
        self._kinds = scenario.kinds_of(stage_name)
        self._shares = tuple(accumulate(kind.weight for kind in self._kinds))
        self._repeats = workload.repeats
        self._languages = (workload.source, workload.target)
        origin = f"{scenario.name}/{seed}/{stage_name}"
        # Seeds of different stages are far apart. Consecutive seeds give unrelated generators: all bits are hashed.
        self._seed = int.from_bytes(hashlib.sha256(origin.encode()).digest()[:12]) << 32
        try:
            self._lengths = tuple(
                length_distribution(kind.lengths or workload.lengths, workload.source) for kind in self._kinds
            )
            self._source: SentenceSource = (
                ComposedSentences(grammar_of(workload.source))
                if workload.corpus is None
                else CorpusSentences(corpus_lines(workload.corpus), origin)
            )
        except ValueError as error:
            raise ScenarioInvalid(str(error)) from error

    def request(self, number: int) -> TextRequest:
        """Return the request of that number."""
        draw = random.Random(self._seed + number).random
        # A repeated request may be a repetition itself, so a few texts are frequent and most occur once (a Yule-Simon
        # process; Simon 1955).
        origin = number
        while self._repeats and draw() < self._repeats and origin:
            origin = int(draw() * origin)
            draw = random.Random(self._seed + origin).random
        chosen = bisect(self._shares, draw() * self._shares[-1], hi=len(self._kinds) - 1)
        kind = self._kinds[chosen]
        num_sentences = 1
        if kind.text != "sentence":
            lowest, highest = kind.list_texts if kind.text == "list" else kind.paragraph_sentences
            num_sentences = lowest + int(draw() * (highest - lowest + 1))
        sentences = self._source.sentences(origin, num_sentences, self._lengths[chosen], draw)
        hang_up = kind.hang_up_after
        return TextRequest(
            number=number,
            kind=kind.name,
            protocol=kind.protocol,
            texts=sentences if kind.text == "list" else (" ".join(sentences),),
            beam_size=kind.beam_size,
            source=self._languages[0],
            target=self._languages[1],
            hang_up_after_seconds=hang_up and hang_up[0] + draw() * (hang_up[1] - hang_up[0]),
            num_sentences=num_sentences,
            options=kind.options,
        )
