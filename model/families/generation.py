"""Settings of a checkpoint that concern generation, by the rules of transformers: special tokens, tasks, options."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model.checkpoints.checkpoint import Generation, GenerationTask
from model.checkpoints.hugging_face_files import CONFIG_FILE, Settings, read_settings

GENERATION_FILE = "generation_config.json"
# Scores of tokens that change at some positions, or by a number.
_UNSUPPORTED = ("begin_suppress_tokens", "sequence_bias")
_Option = bool | int | float

# (name in Hugging Face's format, name in requests, types, conversion). Lengths there include the start token.
_OPTIONS: tuple[tuple[str, str, tuple[type, ...], Callable[[_Option], _Option]], ...] = (
    ("num_beams", "beam_size", (int,), lambda value: value),
    ("length_penalty", "length_penalty", (int, float), float),
    ("early_stopping", "early_stopping", (bool,), lambda value: value),
    ("no_repeat_ngram_size", "no_repeat_ngram_size", (int,), lambda value: value),
    ("repetition_penalty", "repetition_penalty", (int, float), float),
    ("min_length", "min_new_tokens", (int,), lambda value: max(value - 1, 0)),
    ("max_length", "max_new_tokens", (int,), lambda value: max(value - 1, 1)),
    ("min_new_tokens", "min_new_tokens", (int,), lambda value: value),
    ("max_new_tokens", "max_new_tokens", (int,), lambda value: value),
)
_LARGEST = 10**9  # of a value that means something
_SAMPLING = (("temperature", (int, float)), ("top_k", (int,)), ("top_p", (int, float)))


@dataclass(frozen=True, slots=True)
class GenerationSettings:
    """Settings of a checkpoint by the rules of transformers.

    `config` is config.json, where a missing setting has the default of the model's class. `generation` is
    generation_config.json. Without that file, config.json has the settings of generation too.
    """

    config: Settings
    generation: Settings

    @classmethod
    def read(cls, folder: Path, defaults: Mapping[str, object]) -> "GenerationSettings":
        """Read the files of a folder. Raises `CheckpointError`."""
        config = read_settings(folder / CONFIG_FILE)
        has_own_file = (folder / GENERATION_FILE).is_file()
        generation = read_settings(folder / GENERATION_FILE) if has_own_file else config
        return cls(Settings(config.file_name, {**defaults, **config.values}), generation)

    def token(self, name: str) -> int:
        """Return the number of a special token; the model's own if the settings of generation lack it."""
        has_own = self.generation.values.get(name) is not None
        return self.generation.integer(name) if has_own else self.config.integer(name)

    @property
    def padding(self) -> int:
        """The token of padding; without one, it is the end."""
        padding = self.config.optional_integer("pad_token_id")
        return self.token("eos_token_id") if padding is None else padding

    @property
    def decoder_start(self) -> int:
        """The first input of the decoder: the one that is named, or the token of the beginning, or padding."""
        for settings, name in (
            (self.generation, "decoder_start_token_id"),
            (self.generation, "bos_token_id"),
            (self.config, "decoder_start_token_id"),
        ):
            if settings.values.get(name) is not None:
                return settings.integer(name)
        return self.padding

    @property
    def forced_first(self) -> int | None:
        """The first token of every output, or None."""
        # Settings of the first BART models.
        if self.generation.file_name == CONFIG_FILE and self.generation.boolean(
            "force_bos_token_to_be_generated", False
        ):
            return self.token("bos_token_id")
        return self.generation.optional_integer("forced_bos_token_id")

    @property
    def forces_end(self) -> bool:
        """Whether an output at the length limit ends with the end-of-sequence token.

        Raises `CheckpointError` for another forced token.
        """
        end, forced = self.token("eos_token_id"), self.generation.optional_integer("forced_eos_token_id")
        if forced not in (None, end):
            self.generation.reject("forced_eos_token_id", f"must be `eos_token_id` {end} or null")
        return forced is not None

    def tokens(self) -> dict[str, Any]:
        """Return the fields of `TransformerConfig` about tokens. Raises `CheckpointError`."""
        return {
            "pad_token_id": self.padding,
            "eos_token_id": self.token("eos_token_id"),
            "decoder_start_token_id": self.decoder_start,
            "bos_token_id": self.config.optional_integer("bos_token_id"),
            "suppressed_token_ids": self.suppressed,
            "forced_first_token_id": self.forced_first,
            "forced_eos": self.forces_end,
        }

    @property
    def suppressed(self) -> tuple[int, ...]:
        """Tokens that are never generated, in order. Raises `CheckpointError` for other changes of scores."""
        settings = self.generation
        for name in _UNSUPPORTED:
            if settings.values.get(name) not in (None, [], {}):
                settings.reject(name, "must be null: tokens can only be suppressed at every position")
        suppressed: set[int] = set()
        for name in ("bad_words_ids", "suppress_tokens"):
            entries = settings.values.get(name)
            if entries is None:
                continue
            if not isinstance(entries, list):
                settings.reject(name, "must be a list")
            for entry in entries:
                sequence = entry if isinstance(entry, list) else [entry]
                if len(sequence) != 1 or isinstance(sequence[0], bool) or not isinstance(sequence[0], int):
                    settings.reject(name, f"must contain single tokens, not {entry}")
                # Among bad words, transformers skips the end: every output must be able to end.
                if name == "suppress_tokens" or sequence[0] != self.token("eos_token_id"):
                    suppressed.add(sequence[0])
        return tuple(sorted(suppressed))


def read_generation(settings: GenerationSettings, is_translation: Callable[[str], bool]) -> Generation:
    """Return the tasks in the settings of a checkpoint, but those of translations."""
    names = ["do_sample", *(option[0] for option in _OPTIONS), *(option[0] for option in _SAMPLING)]
    own = {name: settings.generation.values.get(name) for name in names}
    described = settings.config.values.get("task_specific_params")
    tasks = {
        str(name): GenerationTask(_text(task.get("prefix")), _options(task))
        for name, task in (described.items() if isinstance(described, dict) else ())
        if isinstance(task, dict) and not is_translation(str(name))
    }
    return Generation(_text(settings.config.values.get("prefix")), _options(own), tasks)


def _options(values: Mapping[str, object]) -> dict[str, _Option]:
    options: dict[str, _Option] = {}
    for theirs, ours, types, convert in _OPTIONS:
        value = values.get(theirs)
        if isinstance(value, (bool, int, float)) and type(value) in types and abs(value) <= _LARGEST:
            options[ours] = convert(value)
    if values.get("do_sample") is True:
        for name, types in _SAMPLING:
            value = values.get(name)
            if isinstance(value, (int, float)) and type(value) in types and value > 0:
                options[name] = value
    return options


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
