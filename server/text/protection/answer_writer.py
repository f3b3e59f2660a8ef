"""The text of an answer with its items, and the positions of its words."""

from collections.abc import Callable
from dataclasses import dataclass, field

from server.text.protection.sign_placement import PlacedSign
from server.text.protection.word_alignment import Range, words_of
from server.text.readers.units import OBJECT

_ENDS_OF_CLAUSES = frozenset(",.;:!?")


@dataclass(slots=True)
class AnswerWriter:
    """Writes the restored text of an answer from beginning to end.

    `words` are those of `text`, `answer_words` the same words in the answer; `anchors` are pairs of the indices of a
    target word and a source word. `case` returns a word of the answer, from a position, in its final case.
    """

    answer: str
    case: Callable[[int, str], str]
    cut_words: dict[str, list[int]]
    text: str = ""
    words: list[Range] = field(default_factory=list)
    answer_words: list[Range] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    anchors: list[Range] = field(default_factory=list)
    _shown: list[str] = field(default_factory=list)
    _position: int = 0

    def with_outputs(self) -> str:
        """Return the text with all items."""
        shown = iter(self._shown)
        first, *others = self.text.split(OBJECT)
        return first + "".join(next(shown) + other for other in others)

    def write_protected(self, end: int, output: str, shown: str, word: int) -> None:
        """Write `output`, as text `shown`, for an item of the source with this word; its counterpart ends here."""
        self._shown.append(shown)
        self.anchors.append((len(self.words), word))
        self.outputs.append(output)
        self._write(self._position, end, OBJECT)

    def write_sign(self, sign: PlacedSign) -> None:
        """Write a sign where no word of the answer stands for it."""
        self.text += " " * (sign.has_space_before and self.text[-1:] not in ("", " "))
        self.write_protected(sign.position, sign.output, sign.shown, sign.word)
        behind = self.answer[sign.position : sign.position + 1]
        needs_space = sign.has_space_behind and not behind.isspace() and behind not in _ENDS_OF_CLAUSES
        self.text += " " * (needs_space and sign.position < len(self.answer))

    def write_answer(self, end: int) -> None:
        """Write the words of the answer up to here."""
        begin = self._position
        for first, last in words_of(self.answer[begin:end]):
            start, stop = begin + first, begin + last
            for length in self.cut_words.get(self.answer[start:stop], [stop - start]):
                self._write(start, start + length, self.case(start, self.answer[start : start + length]))
                start += length
        self.text += self.answer[self._position : end]
        self._position = end

    def _write(self, start: int, end: int, word: str) -> None:
        self.text += self.answer[self._position : start]
        self.words.append((len(self.text), len(self.text) + len(word)))
        self.answer_words.append((start, end))
        self.text += word
        self._position = end
