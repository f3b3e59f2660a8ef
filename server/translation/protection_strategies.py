"""Protection strategies, which are tried in turn for a sentence until nothing in its translation is lost.

Plain text has one, `AsIs`. Sentences of any other text have these:

1. `Escalation` sends a sentence as it is at first, and from round to round takes stronger means for each item that was
   lost: an item of its kind, a name, a name that the search must write.
2. `Piecewise` translates the fragments between items. That cannot lose anything.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from server.text.completeness import SENTENCE_ENDS, parts
from server.text.glossary import Glossary
from server.text.items.kinds import OPAQUE
from server.text.negation import negation_of
from server.text.protection.answer_casing import CaseRules
from server.text.protection.found_item import Notation
from server.text.protection.means import Means, first_means, next_means
from server.text.protection.model_input import model_input, unit_words
from server.text.protection.protected import Protected, Restored
from server.text.protection.protected_sentence import PlainSentence, ProtectedSentence, replaced, unchanged
from server.text.protection.word_alignment import Range
from server.translation.sentences import Sentence

_NUM_ROUNDS = 4  # before a sentence is translated in pieces
# Long sentences are decoded fewer times before that: their rounds are the expensive ones, and seldom succeed where one
# has failed. Source tokens and rounds; docs/decisions/text.md has the numbers.
_MAX_ROUNDS = ((24, 1), (14, 2))


class Protection(Protocol):
    """One way to take a sentence through the model."""

    def protect(self, sentence: Sentence) -> Sequence[Protected | Restored] | None:
        """Return the parts of a sentence, of which `Restored` ones need no decoding; None if it is not applicable."""
        ...


@dataclass(slots=True)
class AsIs:
    """Sentences of plain text; one without a letter or a digit needs no decoding, nor does one of `exact_terms`."""

    glossary: Glossary | None = None
    is_whole_text: bool = False
    exact_terms: Glossary | None = None

    def protect(self, sentence: Sentence) -> Sequence[Protected | Restored]:
        """Return the sentence."""
        text = sentence.unit.text[sentence.start : sentence.end]
        if not any(map(str.isalnum, text)):
            return (Restored(text),)
        if self.exact_terms is not None and (term := self.exact_terms.only_term(text)) is not None:
            return (Restored(text[: term.start] + term.text + text[term.end :]),)
        return (PlainSentence(text, self.glossary, self.is_whole_text),)


@dataclass(frozen=True, slots=True)
class Escalation:
    """The sentence with each item as it is, or with the means that comes after the one that lost it.

    A sentence that is one of `exact_terms` is not decoded.
    """

    notation: Notation
    cases: CaseRules
    round: int
    exact_terms: Glossary | None = None
    keeps_negations: bool = True

    def protect(self, sentence: Sentence) -> Sequence[Protected | Restored] | None:
        """Return the sentence; None if there are not enough substitutes, or only pieces of it can be translated."""
        span = (sentence.start, sentence.end)
        if not _has_letters(sentence):
            return (unchanged(sentence.unit, span, self.notation),)
        kinds = [each.kind for each in sentence.unit.protected_in(*span)]
        if (parts := self._only_term(sentence)) is not None:
            return parts
        if self.round == 0:
            sentence.means = [first_means(kind, sentence.never_copied) for kind in kinds]
        for index in sentence.lost:
            sentence.means[index] = next_means(kinds[index], sentence.means[index])
        if Means.APART in sentence.means or (sentence.lost and self.round >= _max_rounds(sentence)):
            return Piecewise(self.notation, self.cases).protect(sentence)
        words = unit_words(sentence.unit, span)
        built = model_input(sentence.unit, span, words, sentence.means, self.cases.source, self.round)
        if built is None:
            return None
        negation = None
        if self.keeps_negations:
            negation = negation_of(built.text, self.notation.source, self.notation.target)
        if negation is not None and sentence.negation_means:
            built = built.with_full_stop()
        return (
            ProtectedSentence(
                sentence.unit, span, words, built, self.notation, self.cases,
                round=self.round, negation=negation, negation_means=sentence.negation_means,
            ),
        )  # fmt: skip

    def _only_term(self, sentence: Sentence) -> Sequence[Restored] | None:
        """Return the parts of a sentence that is one of `exact_terms`; None for any other."""
        unit, start, end = sentence.unit, sentence.start, sentence.end
        if self.exact_terms is None or (term := self.exact_terms.only_term(unit.text[start:end])) is None:
            return None
        first, last = start + term.start, start + term.end
        if unit.protected_in(first, last):
            return None
        return (unchanged(unit, (start, first)), replaced(unit, (first, last), term.text), unchanged(unit, (last, end)))


@dataclass(frozen=True, slots=True)
class Piecewise:
    """The fragments between items, each by itself."""

    notation: Notation
    cases: CaseRules

    def protect(self, sentence: Sentence) -> Sequence[Protected | Restored]:
        """Return the fragments, the items, and the punctuation around them."""
        return list(self._parts(sentence))

    def _parts(self, sentence: Sentence) -> Iterator[Protected | Restored]:
        unit, position, is_continuation = sentence.unit, sentence.start, False
        protected = unit.protected_in(sentence.start, sentence.end)
        for start, end in (*((each.start, each.end) for each in protected), (sentence.end, sentence.end)):
            words = [at for at in range(position, start) if unit.text[at].isalnum()]
            if any(unit.text[at].isalpha() for at in words):
                first, last = words[0], words[-1] + 1
                yield unchanged(unit, (position, first))
                spans = unit_words(unit, (first, last))
                built = model_input(unit, (first, last), spans, (), self.cases.source, 0)
                assert built is not None, "a fragment has no items"
                yield ProtectedSentence(
                    unit, (first, last), spans, built, self.notation, self.cases,
                    is_fragment=True, is_continuation=is_continuation,
                )  # fmt: skip
                position, is_continuation = last, True
            yield unchanged(unit, (position, end), self.notation)
            position = end


@dataclass(frozen=True, slots=True)
class ByParts:
    """Each part of a sentence by itself: of several sentences, between semicolons, in brackets and quotation marks."""

    notation: Notation
    cases: CaseRules

    def protect(self, sentence: Sentence) -> Sequence[Protected | Restored] | None:
        """Return the parts and all between them; None if there is one part."""
        unit = sentence.unit
        spans = parts(unit.masked("x", sentence.start, sentence.end, kinds=OPAQUE), self.notation.source)
        if len(spans) < 2:
            return None
        found: list[Protected | Restored] = []
        position = sentence.start
        for first, last in spans:
            start, end = sentence.start + first, sentence.start + last
            if unit.is_inside_protected(start) or unit.is_inside_protected(end):
                return None
            found.append(unchanged(unit, (position, start), self.notation))
            found += self._part(sentence, (start, end))
            position = end
        found.append(unchanged(unit, (position, sentence.end), self.notation))
        return found

    def _part(self, sentence: Sentence, span: Range) -> Sequence[Protected | Restored]:
        unit = sentence.unit
        words = unit_words(unit, span)
        means = [first_means(each.kind, sentence.never_copied) for each in unit.protected_in(*span)]
        built = None if Means.APART in means else model_input(unit, span, words, means, self.cases.source, 0)
        if built is None:
            return Piecewise(self.notation, self.cases).protect(replace(sentence, start=span[0], end=span[1]))
        if unit.text[span[1] - 1] not in SENTENCE_ENDS:
            built = built.with_full_stop()
        return (
            ProtectedSentence(
                unit, span, words, built, self.notation, self.cases,
                is_continuation=span[0] > sentence.start and unit.text[span[0]].islower(),
            ),
        )  # fmt: skip


def protections_for(
    source: str,
    target: str,
    cases: CaseRules,
    *,
    localizes: bool = True,
    exact_terms: Glossary | None = None,
    keeps_negations: bool = True,
) -> tuple[Protection, ...]:
    """Return the strategies for sentences from one language to another, in their order."""
    notation = Notation(source, target, localizes)
    rounds = (Escalation(notation, cases, number, exact_terms, keeps_negations) for number in range(_NUM_ROUNDS))
    return (*rounds, Piecewise(notation, cases))


def _max_rounds(sentence: Sentence) -> int:
    """Return how often a sentence is decoded before it is translated in pieces."""
    num_tokens = sum(len(job.request.source) for job in sentence.jobs)
    return next((rounds for limit, rounds in _MAX_ROUNDS if num_tokens > limit), _NUM_ROUNDS)


def _has_letters(sentence: Sentence) -> bool:
    return any(map(str.isalpha, sentence.unit.masked(" ", sentence.start, sentence.end)))
