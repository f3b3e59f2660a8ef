"""A live sentence as a model reads it: masks stand for machine-readable spans, which come back character by character.

What was committed keeps its meaning: a committed mask stands for the same span while its sentence grows or is revised.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import regex

from server.text.protection.masked_sentence import bounded, needs_blank
from server.text.protection.word_alignment import Range
from server.text.spans import Span

UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_WORD = regex.compile(rf"{UNSPACED}|(?:(?!{UNSPACED})\S)+")


def source_words(text: str) -> list[Range]:
    """Return the words of a source: between blanks, or single characters of scripts without blanks."""
    return [match.span() for match in _WORD.finditer(text)]


@dataclass(frozen=True, slots=True)
class Mask:
    """A string that stands for the span `text`, which ends at the character `end` of its sentence; 0 if it is gone."""

    sign: str
    text: str
    end: int


@dataclass(frozen=True, slots=True)
class Reading:
    """A sentence as a model reads it. `words` are the ranges in the sentence of the words of `text`.

    `has_words` is whether there is anything to translate outside of the masks.
    """

    text: str
    words: tuple[Range, ...]
    masks: tuple[Mask, ...]
    has_words: bool

    @classmethod
    def of(cls, text: str, spans: Sequence[Span], signs: Sequence[str], held: Sequence[Mask]) -> "Reading":
        """Read a sentence with masks for the spans, until the signs run out. `held` are committed masks."""
        gone = list(held)
        free = (sign for sign in signs if sign not in text and all(sign != each.sign for each in held))
        masks: list[Mask] = []
        written, ranges, has_words, position = "", list[Range](), False, 0  # ranges of each character written
        for span in spans:
            output = text[span.start : span.end]
            mask = next((each for each in gone if each.text == output), None)
            if mask is not None:
                gone.remove(mask)
            elif (sign := next(free, None)) is not None:
                mask = Mask(sign, output, span.end)
            else:
                break
            masks.append(replace(mask, end=span.end))
            plain = text[position : span.start]
            has_words |= any(map(str.isalpha, plain))
            sign = (
                " " * needs_blank((written + plain)[-1:]) + mask.sign + " " * needs_blank(text[span.end : span.end + 1])
            )
            written += plain + sign
            ranges += [(at, at + 1) for at in range(position, span.start)] + [(span.start, span.end)] * len(sign)
            position = span.end
        written += text[position:]
        ranges += [(at, at + 1) for at in range(position, len(text))]
        has_words |= any(map(str.isalpha, text[position:]))
        words = tuple((ranges[start][0], ranges[end - 1][1]) for start, end in source_words(written))
        return cls(written, words, (*masks, *(replace(each, end=0) for each in gone)), has_words)

    def signs_in(self, answer: str) -> Iterator[tuple[Range, Mask]]:
        """Yield the masks in an answer with their ranges, in order."""
        if not self.masks:
            return
        masks = {each.sign: each for each in self.masks}
        pattern = "|".join(map(bounded, sorted(masks, key=len, reverse=True)))
        for match in regex.finditer(pattern, answer):
            yield match.span(), masks[match.group()]

    def restored(self, answer: str) -> str:
        """Return an answer with the spans in place of the masks."""
        text, position = "", 0
        for (start, end), mask in self.signs_in(answer):
            text += answer[position:start] + mask.text
            position = end
        return text + answer[position:]
