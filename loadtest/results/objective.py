"""The objective of a request: its time limit, and whether it was met."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from loadtest.results.records import Outcome, Record


class Objective(BaseModel):
    """A share of requests to answer within `milliseconds` for each begun `max_source_tokens`.

    A text of 64 tokens has 400 ms and one of 65 has 800: users expect a paragraph later than a sentence.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    milliseconds: float = Field(default=400.0, gt=0)
    max_source_tokens: int = Field(default=64, ge=1)
    share: float = Field(default=0.99, gt=0, le=1)

    def allowed_ms(self, source_tokens: int) -> float:
        """Return the time limit of a request with that many source tokens in all its texts, in milliseconds."""
        return self.milliseconds * max(-(-source_tokens // self.max_source_tokens), 1)

    def is_met_by(self, record: Record) -> bool:
        """Return whether the request was answered in time, from the instant it was due."""
        return record.outcome is Outcome.ANSWERED and record.latency is not None and not self._is_over(record)

    def counts(self, record: Record) -> bool:
        """Return whether the request counts for the objective.

        A request whose client disconnected before the time limit does not: its latency is unknown.
        """
        return record.outcome is not Outcome.HUNG_UP or self._is_over(record)

    def _is_over(self, record: Record) -> bool:
        # Records are exact to a microsecond; the difference of two times is not.
        milliseconds = round((record.latency or 0.0) * 1000, 3)
        return milliseconds > self.allowed_ms(record.source_tokens)


def objective_of(scenario: Mapping[str, JsonValue]) -> Objective:
    """Return the objective in the dump of a scenario, or the default. Raises `ValidationError`."""
    fields = scenario.get("objective")
    return Objective.model_validate(fields) if isinstance(fields, dict) else Objective()
