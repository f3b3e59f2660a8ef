"""Texts in all caps, which models have seldom seen: lower case for the model, and capitals again for its answer."""

# Shorter ones may be abbreviations.
_MIN_LETTERS = 4


def is_all_caps(text: str) -> bool:
    """Return whether all letters are capitals, and there are enough of them to be words."""
    letters = [character for character in text if character.isupper() or character.islower()]
    if not letters or any(character.islower() for character in letters):
        return False
    return len(letters) >= _MIN_LETTERS or (len(letters) >= 2 and len(text.split()) >= 2)


def lower_cased(word: str, is_first: bool, language: str) -> str:
    """Return a word of a sentence in all caps as it is usually written."""
    lowered = word.lower()
    if language == "en" and lowered == "i":
        return "I"
    return lowered[:1].upper() + lowered[1:] if is_first else lowered
