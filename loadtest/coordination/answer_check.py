"""The answer check: does the server answer under load as it does when idle?

A server can be fast by giving other answers under load. The check repeats a sample of the answered requests, one at a
time, on the idle server and without its cache, and compares the answers byte for byte.
"""

import heapq
import http.client
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from loadtest.results.records import answer_digest
from loadtest.results.run_folder import AnswerCheckResult, Difference
from loadtest.sending.addresses import Address
from loadtest.sending.protocols import WrongAnswer, protocol
from loadtest.workload.requests import TextRequest, request_sequence
from loadtest.workload.scenario import Scenario

MAX_DIFFERENCES = 20  # listed; all are counted
_ANSWER_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class SampledAnswer:
    """The answer to one request under load."""

    stage: str
    number: int
    texts: tuple[str, ...]


class AnswerSample:
    """A uniform random sample of at most `size` answers from a stream of unknown length.

    Only seed, stage and number decide which answers are sampled. The merged samples of two parts of a run are therefore
    the sample of the whole run.
    """

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._seed = seed
        self._heap: list[tuple[int, SampledAnswer]] = []  # the next to drop is at the top
        self.population = 0

    def offer(self, answer: SampledAnswer) -> None:
        """Count an answer and add it to the sample if it is drawn."""
        self.population += 1
        self._insert(answer)

    def merge(self, sampled: Iterable[SampledAnswer], population: int) -> None:
        """Merge another sample, drawn from `population` answers."""
        self.population += population
        for answer in sampled:
            self._insert(answer)

    def answers(self) -> list[SampledAnswer]:
        """Return the sample, in the order of stages and numbers."""
        return sorted((answer for _, answer in self._heap), key=lambda answer: (answer.stage, answer.number))

    def _insert(self, answer: SampledAnswer) -> None:
        key = f"{self._seed}/{answer.stage}/{answer.number}".encode()
        entry = (-int.from_bytes(sha256(key).digest()[:8]), answer)
        if len(self._heap) < self._size:
            heapq.heappush(self._heap, entry)
        elif self._size:
            heapq.heappushpop(self._heap, entry)


def check_answers(sample: AnswerSample, scenario: Scenario, seed: int, address: Address) -> AnswerCheckResult:
    """Repeat the sampled requests one after the other and compare the answers.

    Requests that the idle server does not answer are counted by reason.
    """
    checked = 0
    different = []
    unanswered = Counter[str]()
    server = _IdleServer(address)
    sequences = {}
    for answer in sample.answers():
        if answer.stage not in sequences:
            sequences[answer.stage] = request_sequence(scenario, seed, answer.stage)
        request = sequences[answer.stage](answer.number)
        offline = server.answer_to(request)
        if isinstance(offline, str):
            unanswered[offline] += 1
            continue
        checked += 1
        if answer_digest(offline) != answer_digest(answer.texts):
            pairs = zip(request.texts, offline, answer.texts, strict=True)
            text, alone, under_load = next(pair for pair in pairs if pair[1] != pair[2])
            different.append(Difference(answer.number, answer.stage, text, alone, under_load))
    server.close()
    identical = checked - len(different)
    share = identical / checked if checked else 1.0
    reasons = dict(unanswered.most_common())
    return AnswerCheckResult(checked, identical, sample.population, share, tuple(different[:MAX_DIFFERENCES]), reasons)


class _IdleServer:
    """One connection to the idle server, one request at a time."""

    def __init__(self, address: Address) -> None:
        self._address = address
        kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(address.host, address.port, timeout=_ANSWER_SECONDS)

    def answer_to(self, request: TextRequest) -> tuple[str, ...] | str:
        """Return the texts of the answer, or the reason why there is none."""
        module = protocol(request.protocol)
        call = module.http_request(request, bypass_cache=True)
        for is_last in (False, True):
            try:
                self._connection.request(call.method, self._address.path + call.path, call.body, call.headers)
                response = self._connection.getresponse()
                body = response.read()
                break
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()  # the server may have closed an idle connection: retry once on a new one
                if is_last:
                    return f"no answer: {type(error).__name__}"
        if response.status != 200:
            return f"HTTP {response.status}"
        try:
            return module.read_answer(body, request).texts
        except WrongAnswer as wrong:
            return str(wrong)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
