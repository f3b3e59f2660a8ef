"""A paragraph broken into lines again."""

from collections.abc import Callable, Sequence


def _begins_with_letter(word: str) -> bool:
    return word[:1].isalpha()


def refill(
    words: Sequence[str], width: int, line_break: str, may_begin: Callable[[str], bool] = _begins_with_letter
) -> str:
    """The words in lines of about `width` characters at most, with `line_break` between.

    `may_begin` says whether a line may begin with a word: what is no letter may mean something there.
    """
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) > width and may_begin(word):
            lines.append(word)
        else:
            lines[-1] += " " + word
    return line_break.join(lines)
