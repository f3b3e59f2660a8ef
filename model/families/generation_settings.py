"""Settings of a checkpoint that concern generation: special tokens, forced tokens, suppressed tokens."""

from dataclasses import dataclass

from model.checkpoints.hugging_face_files import Settings


@dataclass(frozen=True, slots=True)
class GenerationSettings:
    """config.json and generation_config.json; the second takes precedence."""

    config: Settings
    generation: Settings

    def owner(self, name: str) -> Settings:
        """Return the file that defines a setting."""
        return self.config if self.generation.values.get(name) is None else self.generation

    def integer(self, name: str, default: int | None = None) -> int:
        """Return a whole number. Without a default it is required."""
        return self.owner(name).integer(name, default)

    def optional_integer(self, name: str) -> int | None:
        """Return a whole number or None."""
        return self.owner(name).optional_integer(name)

    @property
    def forces_end(self) -> bool:
        """Whether an output at the length limit ends with the end-of-sequence token.

        Raises `CheckpointError` for another forced token.
        """
        end, forced = self.integer("eos_token_id"), self.optional_integer("forced_eos_token_id")
        if forced not in (None, end):
            self.owner("forced_eos_token_id").reject("forced_eos_token_id", f"must be `eos_token_id` {end} or null")
        return forced is not None

    @property
    def suppressed(self) -> tuple[int, ...]:
        """Tokens that are never generated, in order."""
        suppressed: set[int] = set()
        for name in ("bad_words_ids", "suppress_tokens"):
            owner = self.owner(name)
            entries = owner.values.get(name)
            if entries is None:
                continue
            if not isinstance(entries, list):
                owner.reject(name, "must be a list")
            for entry in entries:
                sequence = entry if isinstance(entry, list) else [entry]
                if len(sequence) != 1 or isinstance(sequence[0], bool) or not isinstance(sequence[0], int):
                    owner.reject(name, f"must contain single tokens, not {entry}")
                suppressed.add(sequence[0])
        return tuple(sorted(suppressed))

    def require(self, required: dict[str, tuple[object, str]]) -> None:
        """Raise `CheckpointError` if one of these settings has another value than the only one supported."""
        for one_file in (self.config, self.generation):
            for name, (supported, requirement) in required.items():
                if one_file.values.get(name) not in (supported, None, []):
                    one_file.reject(name, requirement)
