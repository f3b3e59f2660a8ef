"""Capitals of an answer, after those of its source."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from server.text.protection.capitals import Casing, in_title, upper
from server.text.protection.free_words import PlacementScores, TargetWords
from server.text.protection.truecaser import CasedWords, Truecaser
from server.text.protection.word_alignment import Links, Range

_BEFORE_SENTENCES = frozenset(':.!?…"“„»«')
_BEFORE_PARTS = _BEFORE_SENTENCES | {"(", "[", ";"}
CaseOf = Callable[[int, str], str]  # from a word at a position of the answer to the same word in its final case


@dataclass(frozen=True, slots=True)
class CaseRules:
    """The words of both languages of a translation. With `keeps_first` an answer begins as the model wrote it."""

    source: Truecaser
    target: Truecaser
    keeps_first: bool = False

    def with_first_letter(self, text: str, source: str, start: int, is_continuation: bool) -> str:
        """Return an answer of equal length whose first word has the case that its place in the source asks for."""
        if self.keeps_first:
            return text
        is_small = not source[start].isupper()
        if is_continuation:
            before = source[max(start - 3, 0) : start].rstrip()[-1:]
            if is_small and before in _BEFORE_PARTS:
                return self.target.first_as_inside(text, only_surely=True)
            # German nouns have capitals anywhere.
            is_kept = before in _BEFORE_SENTENCES or not (is_small or self.source.language.startswith("de"))
            return text if is_kept else self.target.first_as_inside(text)
        capital = upper(text[:1], self.target.language)
        return text if is_small or text[1:2].isupper() or len(capital) != 1 else capital + text[1:]

    def case_of(self, cased: CasedWords, text: str, words: Sequence[Range], links: Callable[[], Links]) -> CaseOf:
        """Return the function that writes the words of an answer `text` in the case of their source."""
        language = self.target.language
        match cased.casing:
            case Casing.UPPER:
                return lambda _, word: upper(word, language)
            case Casing.TITLE:
                has_small_words, first = cased.has_small_words, words[0][0] if words else 0
                return lambda start, word: in_title(word, language, has_small_words=has_small_words and start > first)
            case Casing.LOWER:
                lowered = self.target.first_as_inside(text)
                return lambda start, word: lowered[start : start + len(word)] if len(lowered) == len(text) else word
        if not (cased.shouted and words):
            return lambda _, word: word
        first, last = _aligned_run(links(), cased.shouted)
        begin, end = words[first][0], words[last - 1][1]
        return lambda start, word: upper(word, language) if begin <= start < end else word


def _aligned_run(links: Links, source_words: frozenset[int]) -> Range:
    """Return the run of target words that belongs to these source words: the best one, from first to last."""
    values = links[:, sorted(source_words)].sum(axis=1) - 0.5
    _, first, last = TargetWords([False] * len(values)).best_run(PlacementScores(0, values.tolist()), 0, len(values))
    return first, last
