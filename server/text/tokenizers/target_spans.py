"""Character ranges of tokens in a decoded text, for any tokenizer that can decode the beginning of an output."""

from collections.abc import Callable, Sequence
from itertools import pairwise


def spans_of_beginnings(
    token_ids: Sequence[int], text: str, beginning: Callable[[Sequence[int]], str]
) -> list[tuple[int, int]]:
    """Return the range of `text` that each token adds; `beginning` decodes the first tokens.

    A token that only begins a character has an empty range; the token that completes it has the character.
    """
    ends = [0]
    for num_tokens in range(1, len(token_ids) + 1):
        ends.append(min(max(len(beginning(token_ids[:num_tokens])), ends[-1]), len(text)))
    return list(pairwise(ends))
