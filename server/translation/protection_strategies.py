"""Protection strategies, which are tried in turn for a sentence until nothing in its translation is lost.

Plain text has one, `AsIs`. Sentences of any other text have these:

1. `Substitutes` replaces protected spans by names, twice, with other names the second time; any hypothesis will do.
2. `RequiredSubstitutes` makes the names required phrases of a beam search.
3. `Piecewise` translates the fragments between protected spans. That cannot lose anything.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from server.text.glossary import Glossary
from server.text.protection.protected_sentence import (
    PlainSentence,
    Protected,
    ProtectedSentence,
    Restored,
    protected_sentence,
    unchanged,
)
from server.text.protection.substitutes import NUM_ROUNDS, choose_substitutes
from server.translation.sentences import Sentence


class Protection(Protocol):
    """One way to take a sentence through the model."""

    def protect(self, sentence: Sentence) -> Sequence[Protected | Restored] | None:
        """Return the parts of a sentence, of which `Restored` ones need no decoding; None if it is not applicable."""
        ...


@dataclass(slots=True)
class AsIs:
    """Sentences of plain text; one without a letter or a digit needs no decoding."""

    glossary: Glossary | None = None
    is_whole_text: bool = False

    def protect(self, sentence: Sentence) -> Sequence[Protected | Restored]:
        """Return the sentence."""
        text = sentence.unit.text[sentence.start : sentence.end]
        if not any(map(str.isalnum, text)):
            return (Restored(text),)
        return (PlainSentence(text, self.glossary, self.is_whole_text),)


@dataclass(frozen=True, slots=True)
class Substitutes:
    """Names instead of protected spans."""

    language: str
    round: int

    def protect(self, sentence: Sentence) -> Sequence[Protected | Restored] | None:
        """Return the sentence with substitutes; None if there are not enough."""
        if not _has_letters(sentence):
            return (unchanged(sentence.unit, (sentence.start, sentence.end)),)
        found = _with_substitutes(sentence, self.language, self.round)
        return None if found is None else (found,)


@dataclass(frozen=True, slots=True)
class RequiredSubstitutes:
    """Names that the search must produce instead of protected spans."""

    language: str

    def protect(self, sentence: Sentence) -> Sequence[Protected | Restored] | None:
        """Return the sentence with substitutes; None if there are not enough, or nothing is protected."""
        found = _with_substitutes(sentence, self.language, NUM_ROUNDS, must_have=True)
        return (found,) if found is not None and found.substitutes else None


@dataclass(frozen=True, slots=True)
class Piecewise:
    """The fragments between protected spans, each by itself."""

    language: str

    def protect(self, sentence: Sentence) -> Sequence[Protected | Restored]:
        """Return the fragments, the protected spans, and the punctuation around them."""
        return list(self._parts(sentence))

    def _parts(self, sentence: Sentence) -> Iterator[Protected | Restored]:
        unit, position, is_continuation = sentence.unit, sentence.start, False
        protected = unit.protected_in(sentence.start, sentence.end)
        for start, end in (*((each.start, each.end) for each in protected), (sentence.end, sentence.end)):
            words = [at for at in range(position, start) if unit.text[at].isalnum()]
            if any(unit.text[at].isalpha() for at in words):
                first, last = words[0], words[-1] + 1
                yield unchanged(unit, (position, first))
                yield protected_sentence(
                    unit, (first, last), (), self.language, is_fragment=True, is_continuation=is_continuation
                )
                position, is_continuation = last, True
            yield unchanged(unit, (position, end))
            position = end


def protections_for(language: str) -> tuple[Protection, ...]:
    """Return the strategies for sentences in a source language, in their order."""
    rounds = [Substitutes(language, number) for number in range(NUM_ROUNDS)]
    return (*rounds, RequiredSubstitutes(language), Piecewise(language))


def _has_letters(sentence: Sentence) -> bool:
    return any(map(str.isalpha, sentence.unit.masked(" ", sentence.start, sentence.end)))


def _with_substitutes(
    sentence: Sentence, language: str, round_: int, *, must_have: bool = False
) -> ProtectedSentence | None:
    unit, span = sentence.unit, (sentence.start, sentence.end)
    count = len(unit.protected_in(*span))
    names = choose_substitutes(count, unit.text[span[0] : span[1]], round_) if count else []
    if names is None:
        return None
    return protected_sentence(unit, span, names, language, must_have_substitutes=must_have)
