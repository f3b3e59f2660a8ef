"""A paragraph broken into lines again."""


def refill(text: str, width: int, line_break: str) -> str:
    """The text with `line_break` in place of spaces, so that lines have about `width` characters at most.

    Only before a word that begins with a letter: anything else may mean something at the beginning of a line.
    """
    words = text.split(" ")
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) > width and word[:1].isalpha():
            lines.append(word)
        else:
            lines[-1] += " " + word
    return line_break.join(lines)
