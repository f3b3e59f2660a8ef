"""Texts wholly in capitals: read in small letters, and written in capitals again."""

_MIN_WORDS = 2
_MIN_LETTERS = 8  # fewer may be an acronym


def is_shouted(text: str) -> bool:
    """Return whether a text is wholly in capitals, and more than an acronym."""
    if not text.isupper():
        return False
    return sum(map(str.isalpha, text)) >= _MIN_LETTERS and len(text.split()) >= _MIN_WORDS


def small(text: str, *, is_first: bool) -> str:
    """Return a text in small letters, in the same length; with a capital if it is the first of a sentence."""
    written = "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)
    first = next((index for index, letter in enumerate(text) if letter.isalpha()), None) if is_first else None
    return written if first is None else written[:first] + text[first] + written[first + 1 :]


def capitals(text: str) -> str:
    """Return a text in capitals."""
    return text.upper()
