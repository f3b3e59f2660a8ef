"""Agreement of the servers' answers to the scenario's sentences with Hugging Face in float32."""

import http.client
import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from urllib.parse import urlsplit

from benchmarks.servers.server_kinds import Protocol
from loadtest.sending.protocols.registry import protocol
from loadtest.workload.requests import TextRequest, request_sequence
from loadtest.workload.scenario import Scenario

TEXTS_AT_ONCE = 16
_ANSWER_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Agreement:
    """Number of texts that a server translates like the reference, and the lengths of both in characters."""

    beam_size: int
    texts: int
    identical: int
    characters: int
    reference_characters: int

    @property
    def share(self) -> float:
        """Share of identical texts; 1 without texts."""
        return self.identical / self.texts if self.texts else 1.0


def texts_of(scenario: Scenario, seed: int, number: int) -> list[str]:
    """Return that many different texts of the scenario's requests."""
    request = request_sequence(scenario, seed, "answers")
    texts: dict[str, None] = {}
    index = 0
    while len(texts) < number and index < 100 * number:
        texts |= dict.fromkeys(request(index).texts)
        index += 1
    return list(texts)[:number]


def translations(
    url: str, protocol_name: Protocol, texts: Sequence[str], beam_size: int, scenario: Scenario
) -> list[str]:
    """Return a server's answers, requested in batches of texts. Raises OSError, or `ValueError` for another status."""
    module = protocol(protocol_name)
    found: list[str] = []
    with closing(http.client.HTTPConnection(urlsplit(url).netloc, timeout=_ANSWER_SECONDS)) as connection:
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            batch = tuple(texts[start : start + TEXTS_AT_ONCE])
            request = TextRequest(
                number=start,
                kind="answers",
                protocol=protocol_name,
                texts=batch,
                beam_size=beam_size if protocol_name == "native" else None,
                source=scenario.workload.source,
                target=scenario.workload.target,
                hang_up_after_seconds=None,
                num_sentences=len(batch),
            )
            call = module.http_request(request)
            connection.request(call.method, call.path, call.body, call.headers)
            response = connection.getresponse()
            body = response.read()
            if response.status != 200:
                raise ValueError(
                    f"{url} answered {response.status}: {json.dumps(body[:200].decode('utf-8', 'replace'))}"
                )
            found += module.read_answer(body, dict(response.getheaders()), request).texts
    return found


def agreement(beam_size: int, answers: Sequence[str], reference: Sequence[str]) -> Agreement:
    """Compare the answers with those of the reference, text by text."""
    return Agreement(
        beam_size=beam_size,
        texts=len(reference),
        identical=sum(ours == theirs for ours, theirs in zip(answers, reference, strict=True)),
        characters=sum(map(len, answers)),
        reference_characters=sum(map(len, reference)),
    )
