"""Characters that a model would lose because its vocabulary does not contain them, or it has not learned them."""

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

import regex

from server.text.language_tags import scripts_of

# Plainer forms of characters, for vocabularies that contain only those. Characters that only control how a word is
# broken or drawn have no counterpart in a translation.
_PLAINER = {
    **dict.fromkeys("\N{SOFT HYPHEN}\N{WORD JOINER}\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}", ""),
    **dict.fromkeys("“”„‟″«»", '"'),
    **dict.fromkeys("‘’‚‛′`´", "'"),
    **dict.fromkeys("‐‑‒–—―−", "-"),
    "…": "...",
    "•": "-",
}
# White space, which a tokenizer drops without harm.
_WEIGHTLESS = ("Zs", "Zl", "Zp")
_MAX_REMEMBERED = 10_000


def readable(known: Iterable[str], languages: Sequence[str]) -> frozenset[str]:
    """Return the characters of a vocabulary that a model for these languages has learned to read.

    Those that strayed into a vocabulary, letters of scripts in which none of the languages is written, are not among
    them. Latin letters are, and all letters if the script of a language is unknown.
    """
    scripts = [scripts_of(language) for language in languages]
    if not (scripts and all(scripts)):
        return frozenset(known)
    pattern = _of_other_scripts(frozenset({"Latn"}.union(*scripts)))
    return frozenset(known).difference(pattern.findall("".join(known)))  # in one search: a vocabulary is large


@lru_cache(maxsize=256)
def _of_other_scripts(scripts: frozenset[str]) -> "regex.Pattern[str]":
    """Return a pattern of letters and marks that belong to a script, and to none of these."""
    names = "".join(f"\\p{{{name}}}" for name in ("Zyyy", "Zinh", *sorted(scripts)))
    return regex.compile(rf"(?=[\p{{L}}\p{{M}}])[^{names}]")


class UnknownCharacters:
    """Detects characters outside the source vocabulary of one model, whose characters are `known`, or that it loses."""

    def __init__(self, known: Iterable[str], lost: Iterable[str] = ()) -> None:
        self._lost = frozenset(lost)
        self._known = frozenset(known) - self._lost
        self._answers: dict[str, bool] = {}

    def all_known(self, text: str) -> bool:
        """Return whether no character of a text would be lost; fast if that is so."""
        return self._known.issuperset(text) or all(map(self.is_known, text))

    def is_known(self, character: str) -> bool:
        """Return whether the vocabulary contains a character, or its NFKC form, which SentencePiece encodes."""
        if character in self._known:
            return True
        if character not in self._answers:
            if len(self._answers) > _MAX_REMEMBERED:
                self._answers.clear()
            self._answers[character] = character not in self._lost and (
                unicodedata.category(character) in _WEIGHTLESS
                or all(part in self._known or part.isspace() for part in unicodedata.normalize("NFKC", character))
            )
        return self._answers[character]

    def with_plainer_forms(self, text: str) -> str:
        """Return a text with plainer forms of unknown characters, if the vocabulary contains them."""
        if self._known.issuperset(text):
            return text
        return "".join(map(self._plainer, text))

    def is_lost(self, character: str) -> bool:
        """Return whether a character is unknown and has no known plainer form."""
        return not self.is_known(character) and self._plainer(character) == character

    def _plainer(self, character: str) -> str:
        if self.is_known(character):
            return character
        plainer = _PLAINER.get(character, character)
        return plainer if all(map(self.is_known, plainer)) else character
