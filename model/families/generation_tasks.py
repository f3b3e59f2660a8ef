"""Tasks of a checkpoint: prefixes of its inputs and its own decoding options, under the names of request fields."""

from collections.abc import Callable, Mapping

from model.checkpoints.checkpoint import Generation, GenerationTask
from model.families.generation_settings import GenerationSettings

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
