"""Counts of finished requests by model and by API key, for the port for administration."""

from dataclasses import dataclass, field

from server.operations.api_keys.key_file import ApiKey
from server.translation.types import TranslationResult

_MAX_MODELS = 1000  # combinations of models, by their names in answers


@dataclass(slots=True)
class Counts:
    """Requests since the start of the server, and the tokens of those that were translated."""

    name: str
    requests: int = 0
    rejected: int = 0
    characters: int = 0
    source_tokens: int = 0
    target_tokens: int = 0

    def add(self, is_rejected: bool, num_characters: int, result: TranslationResult | None) -> None:
        """Count one request."""
        self.requests += 1
        self.rejected += is_rejected
        if result is not None:
            self.characters += num_characters
            self.source_tokens += result.sentence_tokens.num_source_tokens
            self.target_tokens += result.sentence_tokens.num_target_tokens


@dataclass(slots=True)
class Activity:
    """Counts by model (of several, by their names together) and by the id of the key."""

    models: dict[str, Counts] = field(default_factory=dict)
    keys: dict[str, Counts] = field(default_factory=dict)

    def count(
        self,
        model: str | None,
        key: ApiKey | None,
        num_characters: int,
        result: TranslationResult | None,
        *,
        is_rejected: bool,
    ) -> None:
        """Count a finished request."""
        if model is not None and (model in self.models or len(self.models) < _MAX_MODELS):
            self.models.setdefault(model, Counts(model)).add(is_rejected, num_characters, result)
        if key is not None:
            self.keys.setdefault(key.id, Counts(key.name)).add(is_rejected, num_characters, result)
