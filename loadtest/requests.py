"""The requests of a load test: the n-th of a stage is the same wherever and whenever it is made."""

from collections.abc import Callable
from dataclasses import dataclass

from loadtest.scenario import Scenario


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

    A `stage_name` that is no stage of the scenario is a step of its search.
    """
    raise NotImplementedError
