"""Sentences as a model reads them, and the restoration of items and tags in its answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from server.text.glossary import Glossary, capitalized_like
from server.text.items.kinds import PLACED, ItemKind
from server.text.items.survival import Answer
from server.text.negation import Alternatives, Negation
from server.text.protection.answer_casing import CaseRules
from server.text.protection.answer_writer import AnswerWriter
from server.text.protection.capitals import Casing
from server.text.protection.found_item import FoundItem, Notation
from server.text.protection.found_items import find_items, with_equal_marks
from server.text.protection.fragment_end import without_end
from server.text.protection.means import KeptItem, Means, NegationMeans
from server.text.protection.model_input import InputItem, ModelInput, unit_words
from server.text.protection.protected import Losses, Restored, TokenAttention
from server.text.protection.sign_placement import ELLIPSES, PlacedSign, may_be_added, place_signs
from server.text.protection.tag_placement import Block, fits
from server.text.protection.word_alignment import Links, Range, by_words, identity_links, links, words_of
from server.text.readers.units import OBJECT, Unit


@dataclass(slots=True)
class PlainSentence:
    """A sentence without anything to protect."""

    text: str
    glossary: Glossary | None = None
    is_whole_text: bool = False
    substitutes: ClassVar[Sequence[str]] = ()
    may_lose_items: ClassVar[bool] = False
    may_change_answers: ClassVar[bool] = False
    was_lost: ClassVar[bool] = False
    needs_beams: ClassVar[bool] = False
    must_have_substitutes: ClassVar[bool] = False
    required_terms: ClassVar[Sequence[Alternatives]] = ()
    is_fragment: ClassVar[bool] = False
    is_continuation: ClassVar[bool] = False
    places_signs: ClassVar[bool] = False

    @property
    def description(self) -> str:
        """Its name in an error message."""
        return "a text taken as one sentence" if self.is_whole_text else "a part of the text that cannot be divided"

    def restore(self, answer: str, attention: TokenAttention | None, *, corrects: bool = False) -> Restored:
        """Return the answer, with a capital where a glossary term in lower case took the place of one."""
        if self.glossary is not None:
            answer = capitalized_like(self.text, answer, self.glossary.target_terms(self.text))
        return Restored(answer)


@dataclass(frozen=True, slots=True)
class ProtectedSentence:
    """A sentence, or a fragment of one, whose items must survive."""

    unit: Unit
    span: Range
    unit_words: list[Range]
    input: ModelInput
    notation: Notation
    cases: CaseRules
    is_fragment: bool = False
    is_continuation: bool = False
    negation: Negation | None = None
    round: int = 0
    negation_means: NegationMeans = NegationMeans.HYPOTHESES

    @property
    def text(self) -> str:
        """The model input."""
        return self.input.text

    @property
    def substitutes(self) -> Sequence[str]:
        """The names that stand for items."""
        return self.input.names

    @property
    def may_lose_items(self) -> bool:
        """Return whether an answer can be rejected."""
        return bool(self.input.items) or (
            self.negation is not None and self.negation_means is not NegationMeans.ANY_ANSWER
        )

    @property
    def was_lost(self) -> bool:
        """Return whether an earlier search lost something of the sentence."""
        return self.round > 0

    @property
    def needs_beams(self) -> bool:
        """Return whether an earlier search with fewer beams lost the negation."""
        return self.negation_means is not NegationMeans.HYPOTHESES

    @property
    def may_change_answers(self) -> bool:
        """Return whether the restored text may differ from the answer, or be rejected."""
        return bool(self.input.items) or self.input.has_unusual_case or self.negation is not None

    @property
    def must_have_substitutes(self) -> bool:
        """Return whether the search may only produce answers with all substitutes."""
        return any(item.means is Means.REQUIRED for item in self.input.items)

    @property
    def required_terms(self) -> Sequence[Alternatives]:
        """The words of which the search must write one each."""
        if self.negation is None or self.negation_means < NegationMeans.REQUIRED:
            return ()
        return (self.negation.words,)

    @property
    def places_signs(self) -> bool:
        """Return whether signs or capitals are placed by the alignment of words."""
        return bool(self.input.cased.shouted) or any(item.means is Means.PLACED for item in self.input.items)

    @property
    def description(self) -> str:
        """Its name in an error message."""
        return "a part of the text that cannot be divided"

    def restore(self, answer: str, attention: TokenAttention | None, *, corrects: bool = False) -> Restored | Losses:
        """Return the answer with items, signs and capitals; what it lost unless each item is there."""
        text = answer.replace(OBJECT, "")
        if self.is_fragment or self.input.has_full_stop:
            text = without_end(text, self.text, self.unit.text[self.span[1] : self.span[1] + 2])
        items = self.input.items
        if self._has_lost_negation(text):
            return Losses((), has_lost_negation=True)
        result = find_items(text, self.text, items, self.notation, corrects=corrects)
        signs = [item for item in items if item.means is Means.PLACED]
        lost = result.lost
        if corrects:
            signs += [item for item in lost if may_be_added(item)]
            lost = [item for item in lost if not may_be_added(item)]
        if lost:
            return Losses(self._indices(lost))
        if result.has_invented and not corrects:
            return Losses((), has_invented=True)
        if signs and self._ends_with_ellipsis(signs) and all(each.end < len(text) for each in result.found):
            text = text.removesuffix(".")
        found = sorted(result.found, key=lambda each: each.start)
        has_usual_case = self.input.cased.casing is Casing.USUAL and not (found and found[0].start == 0)
        if self.is_continuation or (items and has_usual_case):
            text = self.cases.with_first_letter(text, self.unit.text, self.span[0], self.is_continuation)
        found = with_equal_marks(found, signs, text, self.text, self.notation)
        parts = self._parts(text, found, sorted(signs, key=lambda item: item.word), attention)
        spans = [self.unit_words[part.word if isinstance(part, PlacedSign) else part.item.word] for part in parts]
        if not fits(self.unit.tags_of(*self.span), self.span, spans):
            return Losses(tuple(range(len(items))))
        words = words_of(text)
        case_of = self.cases.case_of(self.input.cased, text, words, lambda: self._links(attention, text, words, []))
        writer = AnswerWriter(text, case_of, self._cut_words())
        for part in parts:
            if isinstance(part, PlacedSign):
                writer.write_answer(part.position)
                writer.write_sign(part)
            else:
                writer.write_answer(part.start)
                writer.write_protected(part.end, *self._output(part, text), part.item.word)
        writer.write_answer(len(text))
        if spoiled := self._spoiled(writer, found, signs):
            return Losses(spoiled)
        means = {each.item.word: each.means for each in found}
        kept = [KeptItem(item.text, item.span.kind, means.get(item.word, Means.PLACED)) for item in items]
        return Restored(writer.text, writer.outputs, self._block(attention, text, writer), kept)

    def _ends_with_ellipsis(self, signs: Sequence[InputItem]) -> bool:
        """Return whether the last of the signs is an ellipsis at the end, which takes the place of a full stop."""
        return signs[-1].text in ELLIPSES and signs[-1].word == len(self.unit_words) - 1

    def _has_lost_negation(self, text: str) -> bool:
        """Return whether an answer lacks the negation; if the search had to write one, whether it has two."""
        if self.negation is None or self.negation_means is NegationMeans.ANY_ANSWER:
            return False
        is_required = self.negation_means is NegationMeans.REQUIRED
        return self.negation.is_doubled(text) if is_required else not self.negation.is_in(text)

    def _spoiled(self, writer: AnswerWriter, found: Sequence[FoundItem], signs: Sequence[InputItem]) -> tuple[int, ...]:
        """Return the items that the text around them changes: `RM-2` in `RM-2th`, `11:10` in `11:10pm`."""
        if not signs and all(each.means is Means.AS_IS for each in found):
            return ()  # nothing was put into the answer
        items = [item for item in self.input.items if item.span.kind is not ItemKind.MARKUP]
        # A word with unknown characters may be an item, which is written in another notation: `±0,5 °C`.
        kinds = [(item, item.span.kind) for item in items]
        shown = [(k, self.notation.of(k, each.text) if k is ItemKind.WORD else each.text) for each, k in kinds]
        ranges = Answer(writer.with_outputs(), self.notation.source, self.notation.target).find(shown)
        lost = [item for item, place in zip(items, ranges, strict=True) if place is None and item.kind not in PLACED]
        return self._indices(lost)

    def _indices(self, items: Sequence[InputItem]) -> tuple[int, ...]:
        """Return the indices of these items of the sentence."""
        wanted = set(map(id, items))
        return tuple(index for index, item in enumerate(self.input.items) if id(item) in wanted)

    def _parts(
        self,
        text: str,
        found: Sequence[FoundItem],
        signs: Sequence[InputItem],
        attention: TokenAttention | None,
    ) -> list[FoundItem | PlacedSign]:
        """Return found items and placed signs in the order of the answer."""
        if not signs:
            return list(found)
        words = words_of(text)
        aligned = self._links(attention, text, words, [])
        occupied = [(each.start, each.end) for each in found]
        languages = self.notation.source, self.notation.target
        placed = place_signs(self.unit, self.unit_words, signs, text, words, aligned, occupied, languages)
        in_order = sorted(
            [*((sign.position, 0, index, sign) for index, sign in enumerate(placed))]
            + [(each.start, 1, index, each) for index, each in enumerate(found)]
        )
        return [part for *_, part in in_order]

    def _output(self, found: FoundItem, text: str) -> tuple[str, str]:
        """Return what is written for an item: in the form of the document, and as text."""
        item, shown = found.item, found.output
        if shown is None:
            shown = self.notation.of(item.span.kind, item.text)
        elif (
            found.means is Means.AS_IS
            and self.input.cased.casing is Casing.UPPER
            and shown == text[found.start : found.end]
        ):
            # A word that the model wrote for a number is in capitals as all words are.
            shown = shown if shown.lower() == item.text.lower() else shown.upper()
        if item.span.kind is ItemKind.TIME and found.start == 0:  # in words
            shown = self.cases.with_first_letter(shown, self.unit.text, self.span[0], self.is_continuation)
        return (item.span.output if shown == item.text else self.unit.escape(shown)), shown

    def _links(
        self, attention: TokenAttention | None, text: str, words: Sequence[Range], anchors: Sequence[Range]
    ) -> Links:
        """Return how likely words of the answer are aligned with those of the unit."""
        weights = None
        if attention is not None and words and self.input.words:
            weights = by_words(
                attention.weights, attention.target_spans, words, attention.source_spans, self.input.words
            )
        target = [text[start:end] for start, end in words]
        source = [self.text[start:end] for start, end in self.input.words]
        return links(source, target, weights, anchors)

    def _block(self, attention: TokenAttention | None, text: str, writer: AnswerWriter) -> Block:
        """Return the words of the restored text, linked to those of the unit if there are tags to place."""
        has_tags = bool(self.unit.tags)
        found = self._links(attention, text, writer.answer_words, writer.anchors) if has_tags else links((), (), None)
        return Block(self.unit_words, writer.words, found, [index for index, _ in writer.anchors])

    def _cut_words(self) -> dict[str, list[int]]:
        """Return the words that tags cut, with the lengths of their pieces: in the answer they are cut again."""
        cut: dict[str, list[int]] = {}
        run: list[Range] = []
        for start, end in (*self.input.words, (len(self.text) + 1, 0)):
            if run and run[-1][1] != start:
                if len(run) > 1:
                    cut[self.text[run[0][0] : run[-1][1]]] = [last - first for first, last in run]
                run = []
            if self.text[start:end].isalnum():
                run.append((start, end))
        return cut


def replaced(unit: Unit, span: Range, text: str) -> Restored:
    """Return `text` in place of a span without items."""
    source, target = unit_words(unit, span), words_of(text)
    aligned = links([unit.text[start:end] for start, end in source], [text[start:end] for start, end in target], None)
    return Restored(text, (), Block(source, target, aligned))


def unchanged(unit: Unit, span: Range, notation: Notation | None = None) -> Restored:
    """Return a span of a unit that needs no decoding, with its items in a notation."""
    words = unit_words(unit, span)
    protected = {(each.start, each.end): each for each in unit.protected_in(*span)}
    text, position = "", span[0]
    outputs: list[str] = []
    target: list[Range] = []
    for word in words:
        content = unit.text[word[0] : word[1]]
        if word in protected:
            each, content = protected[word], OBJECT
            localized = unit.text[each.start : each.end]
            if notation is not None:
                localized = notation.of_mark(notation.of(each.kind, localized), unit.text, each.start)
            is_same = localized == unit.text[each.start : each.end]
            outputs.append(each.output if is_same else unit.escape(localized))
        text += unit.text[position : word[0]]
        target.append((len(text), len(text) + len(content)))
        text += content
        position = word[1]
    text += unit.text[position : span[1]]
    indices = [index for index, word in enumerate(words) if word in protected]
    kept = [KeptItem(unit.text[each.start : each.end], each.kind, Means.APART) for each in protected.values()]
    return Restored(text, outputs, Block(words, target, identity_links(len(words)), indices), kept)
