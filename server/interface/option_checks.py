"""Checks of decoding options against each other and the request. Ranges are checked when options are created."""

from collections.abc import Iterator

from server.interface.decoding_options import NO_OPTIONS, SAMPLING_NAMES, DecodingOptions, applies
from server.interface.errors import InvalidRequest
from server.interface.option_metadata import GREEDY


def check_options(options: DecodingOptions, beam_size: int, max_new_tokens: int, num_texts: int) -> None:
    """Raise `InvalidRequest` for two options that contradict each other, or one that contradicts the request.

    `beam_size` and `max_new_tokens` are the values in force, which may be defaults of the server or the model.
    """
    if options is NO_OPTIONS:
        return
    for problems in (_not_applicable, _contradictory_values):
        for problem in problems(options, beam_size):
            raise InvalidRequest(problem)
    if isinstance(options.target_prefix, tuple) and len(options.target_prefix) != num_texts:
        raise InvalidRequest(
            f"`target_prefix` has {len(options.target_prefix)} entries for {num_texts} texts; "
            "give one for each text, or one for all"
        )
    if options.min_new_tokens >= max_new_tokens:
        raise InvalidRequest(
            "`min_new_tokens` must be below `max_new_tokens`, which counts the end of the sentence. "
            f"Given: min_new_tokens is {options.min_new_tokens}, max_new_tokens is {max_new_tokens}"
        )


def _not_applicable(options: DecodingOptions, beam_size: int) -> Iterator[str]:
    """Yield a message for each option that has no effect in this search, or excludes another one."""
    changed = options.changed()
    mode = options.search_mode(beam_size)
    chosen_by = next((name for name in SAMPLING_NAMES if name in changed), "return_alternatives")
    if options.decodes_independently and (options.beam_size or 1) > 1:
        yield f"`{chosen_by}` cannot be combined with a beam_size of {options.beam_size}: it does not use beams"
    for name in changed:
        applicable = applies(name)
        if applicable is None:
            continue
        if not mode & applicable.modes:
            if mode is GREEDY:
                yield f"`{name}` needs a beam_size of 2 or more. Given: {beam_size}"
            else:
                yield f"`{chosen_by}` cannot be combined with `{name}`"
        for other in applicable.excludes:
            if other in changed:
                yield f"`{name}` cannot be combined with `{other}`"


def _contradictory_values(options: DecodingOptions, beam_size: int) -> Iterator[str]:
    """Yield a message for each two options whose values contradict each other."""
    groups = options.num_beam_groups
    if not options.decodes_independently and beam_size % groups:
        yield f"`num_beam_groups` must divide beam_size. Given: num_beam_groups is {groups}, beam_size is {beam_size}"
    if options.diversity_penalty and groups == 1:
        yield f"`diversity_penalty` is {options.diversity_penalty:g}; set `num_beam_groups` to 2 or more to use it"
    if both := set(options.required_phrases) & set(options.suppress_phrases):
        yield f"`required_phrases` and `suppress_phrases` both have {min(both)!r}; remove it from one of them"
