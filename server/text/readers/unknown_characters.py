"""Characters that a model's vocabulary does not hold, which it would lose."""

import unicodedata
from collections.abc import Iterable

_SOFT_HYPHEN = "\N{SOFT HYPHEN}"
# What people write for what, where a vocabulary has only the plainer form. Of what says only how a word may be broken
# or drawn there is no trace in its translation.
_PLAINER = {
    **dict.fromkeys((_SOFT_HYPHEN, "\N{WORD JOINER}", "\N{ZERO WIDTH JOINER}", "\N{ZERO WIDTH NON-JOINER}"), ""),
    **dict.fromkeys("“”„‟″«»", '"'),
    **dict.fromkeys("‘’‚‛′`´", "'"),
    **dict.fromkeys("‐‑‒–—―−", "-"),
    "…": "...",
    "•": "-",
}
# White space, which a tokenizer drops without harm.
_WEIGHTLESS = ("Zs", "Zl", "Zp")
# Emoji and other pictures: a model that knows them leaves them out all the same.
_DROPPED = ("So", "Cn", "Co")


class UnknownCharacters:
    """What the source vocabulary of one model knows: the characters in `known`."""

    def __init__(self, known: Iterable[str]) -> None:
        # Vocabularies that know the soft hyphen have seen too few words with it.
        self._known = frozenset(
            each for each in known if unicodedata.category(each) not in _DROPPED and each != _SOFT_HYPHEN
        )
        self._answers: dict[str, bool] = {}

    def knows_all(self, text: str) -> bool:
        """Whether no character of a text would be lost; quick where that is so."""
        return self._known.issuperset(text) or all(map(self.knows, text))

    def knows(self, character: str) -> bool:
        """Whether the vocabulary holds it, or what SentencePiece makes of it (NFKC)."""
        if character in self._known:
            return True
        if character not in self._answers:
            if len(self._answers) > 10_000:
                self._answers.clear()
            self._answers[character] = unicodedata.category(character) in _WEIGHTLESS or all(
                part in self._known or part.isspace() for part in unicodedata.normalize("NFKC", character)
            )
        return self._answers[character]

    def readable(self, text: str) -> str:
        """The text with plainer forms of characters that are not known, where the vocabulary has them."""
        if self._known.issuperset(text):
            return text
        return "".join(self._plainer(character) for character in text)

    def is_lost(self, character: str) -> bool:
        """Whether it is not known and has no plainer form that is."""
        return not self.knows(character) and self._plainer(character) == character

    def _plainer(self, character: str) -> str:
        if self.knows(character):
            return character
        plainer = _PLAINER.get(character, character)
        return plainer if all(map(self.knows, plainer)) else character
