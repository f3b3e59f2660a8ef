"""Line wrapping of a translated paragraph."""

from collections.abc import Callable, Sequence


def _begins_with_letter(word: str) -> bool:
    return word[:1].isalpha()


def rewrap(
    words: Sequence[str], width: int, line_break: str, may_begin: Callable[[str], bool] = _begins_with_letter
) -> str:
    """Join words to lines of about `width` characters, separated by `line_break`.

    `may_begin` returns whether a line may begin with a word: a mark may have a meaning there.
    """
    pieces = [words[0]]
    length = len(words[0])
    for word in words[1:]:
        if length + 1 + len(word) > width and may_begin(word):
            pieces += [line_break, word]
            length = len(word)
        else:
            pieces += [" ", word]
            length += 1 + len(word)
    return "".join(pieces)
