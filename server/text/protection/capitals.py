"""Texts in capitals, which models have seldom seen: told in the usual letters, and written in capitals again."""

# Shorter ones may be abbreviations.
_MIN_LETTERS = 4


def is_shouted(text: str) -> bool:
    """Whether all letters are capitals, and there are enough of them to be words."""
    letters = [character for character in text if character.isupper() or character.islower()]
    if not letters or any(character.islower() for character in letters):
        return False
    return len(letters) >= _MIN_LETTERS or (len(letters) >= 2 and len(text.split()) >= 2)


def spoken(word: str, is_first: bool, language: str) -> str:
    """A word of a shouted sentence in the usual letters."""
    lowered = word.lower()
    if language == "en" and lowered == "i":
        return "I"
    return lowered[:1].upper() + lowered[1:] if is_first else lowered
