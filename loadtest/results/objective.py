"""What a request is measured against: how soon its answer must be there, and whether it was."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue, TypeAdapter

from loadtest.results.records import Outcome, Record


@dataclass(frozen=True, slots=True)
class Objective:
    """`share` of the requests are to be answered within `milliseconds` for each begun `max_source_tokens`.

    A text of 64 tokens has 400 ms and one of 65 has 800: nobody expects a paragraph as soon as a sentence.
    """

    milliseconds: float = 400.0
    max_source_tokens: int = 64
    share: float = 0.99

    def allowed_ms(self, source_tokens: int) -> float:
        """Milliseconds that a request of so many source tokens, all its texts together, may take."""
        return self.milliseconds * max(-(-source_tokens // self.max_source_tokens), 1)

    def is_met_by(self, record: Record) -> bool:
        """Whether the request was answered in time, counted from the instant it was due."""
        return record.outcome is Outcome.ANSWERED and record.latency is not None and not self._is_over(record)

    def counts(self, record: Record) -> bool:
        """Whether the request says anything of the objective.

        All do but those whose client hung up while there was still time: nobody knows what they would have got.
        """
        return record.outcome is not Outcome.HUNG_UP or self._is_over(record)

    def _is_over(self, record: Record) -> bool:
        # Records are exact to a microsecond; the difference of two of their times is not.
        milliseconds = round((record.latency or 0.0) * 1000, 3)
        return milliseconds > self.allowed_ms(record.source_tokens)


def objective_of(scenario: Mapping[str, JsonValue]) -> Objective:
    """The objective in the dump of a scenario; the default where it has none. Raises `ValidationError`."""
    fields = scenario.get("objective")
    return TypeAdapter(Objective).validate_python(fields) if isinstance(fields, dict) else Objective()
