"""The requests of a load test: the n-th of a stage is the same wherever and whenever it is made."""

import hashlib
import random
from bisect import bisect
from collections.abc import Callable
from dataclasses import dataclass
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

    `beam_size` None leaves it to the server. `hang_up_after_seconds` is when the client closes the connection, counted
    from sending; None for those who wait.
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

    @property
    def is_list(self) -> bool:
        """True where the texts go as a list."""
        return len(self.texts) > 1

    @property
    def num_words(self) -> int:
        """Words of all texts, by blanks."""
        return sum(len(text.split()) for text in self.texts)


def request_sequence(scenario: Scenario, seed: int, stage_name: str) -> Callable[[int], TextRequest]:
    """Request number n of a stage, n from 0 on: a pure function of the scenario, the seed, the stage and n.

    A `stage_name` that is no stage of the scenario is a step of its search. Raises `ScenarioInvalid` for languages,
    lengths and corpora that are not there.
    """
    return _Sequence(scenario, seed, stage_name).request


def with_corpus_digest(scenario: Scenario) -> Scenario:
    """The scenario with the digest of its corpus, if it has one: by that workers and comparisons know it again.

    Raises `ScenarioInvalid` for a corpus that is not there, or that has other lines than the scenario says.
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
            f"corpus {workload.corpus} has other lines than this load test is for: their sha256 is {digest}, not "
            f"{workload.corpus_sha256}"
        )
    return scenario.model_copy(update={"workload": workload.model_copy(update={"corpus_sha256": digest})})


class _Sequence:
    """Makes the requests of one stage, each with a random generator of its own."""

    def __init__(self, scenario: Scenario, seed: int, stage_name: str) -> None:
        workload = with_corpus_digest(scenario).workload
        self._kinds = scenario.kinds_of(stage_name)
        self._shares = tuple(accumulate(kind.weight for kind in self._kinds))
        self._repeats = workload.repeats
        self._languages = (workload.source, workload.target)
        origin = f"{scenario.name}/{seed}/{stage_name}"
        # Far apart for two stages; neighbours give unrelated generators, which are seeded by hashing all bits.
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
        """The request of that number."""
        draw = random.Random(self._seed + number).random
        # What is repeated may be a repetition: as in any crowd, a few texts are asked for often and most only once
        # (a Yule-Simon process; Simon 1955).
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
        )
