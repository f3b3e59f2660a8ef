"""Line ends of a file, and line wrapping of a translated paragraph."""

from collections.abc import Callable, Sequence


def with_one_line_end(text: str) -> tuple[str, str]:
    """Return the text with `\\n` for every line end, and the line end of most of its lines."""
    num_pairs = text.count("\r\n")
    counts = {"\n": text.count("\n") - num_pairs, "\r\n": num_pairs, "\r": text.count("\r") - num_pairs}
    return text.replace("\r\n", "\n").replace("\r", "\n"), max(counts, key=lambda line_end: counts[line_end])


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


def wrap_like(
    words: Sequence[str],
    lengths: Sequence[int],
    line_breaks: Sequence[str],
    may_begin: Callable[[str], bool] = _begins_with_letter,
) -> str:
    """Join words to as many lines as `lengths`, each with about its share of the characters.

    `line_breaks` separate the lines. Words that are too few make fewer lines.
    """
    total = sum(lengths) or 1
    num_characters = sum(map(len, words)) + len(words) - 1
    pieces = [words[0]]
    length, line, share = len(words[0]), 0, lengths[0]
    for index, word in enumerate(words[1:], start=1):
        lines_left = len(lengths) - 1 - line
        is_due = lines_left > 0 and (length + (len(word) + 1) / 2) * total >= share * num_characters
        if lines_left and ((is_due and may_begin(word)) or len(words) - index <= lines_left):
            pieces += [line_breaks[line], word]
            line += 1
            share += lengths[line]
        else:
            pieces += [" ", word]
        length += 1 + len(word)
    return "".join(pieces)
