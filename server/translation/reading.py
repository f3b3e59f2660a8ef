"""From texts to documents, units and sentences: the first stages of the pipeline."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from bundle.manifest import Shapes
from server.interface.interruption import checkpoint
from server.interface.request import TokenIds
from server.text.glossary import Glossary
from server.text.items.kinds import OPAQUE, ItemKind
from server.text.negation import NegationRules, negation_rules
from server.text.protection.answer_casing import CaseRules
from server.text.protection.capitals import is_surely_usual
from server.text.protection.truecaser import Truecaser
from server.text.readers.html import read_html
from server.text.readers.pieces import to_document
from server.text.readers.plain_text import may_be_special, read_text, read_whole
from server.text.readers.units import Document, Unit
from server.text.readers.unknown_characters import UnknownCharacters
from server.text.readers.xml import read_xml
from server.text.segmentation.sentences import Segment, sentences, split, whole
from server.text.spelled_out import SpelledOut, spelled_out
from server.text.tokenizers.tokenizer import Tokenizer
from server.text.unicode_text import replace_lone_surrogates
from server.translation.deadline import NO_DEADLINE, Deadline
from server.translation.protection_strategies import AsIs, Protection, protections_for
from server.translation.sentences import SegmentedText, Sentence
from server.translation.source_checks import RequestCheck
from server.translation.types import TranslationRequest
from server.translation.worker_threads import INLINE_CHARACTERS, Runner, runner_for

# Stands for every character of a protected span while sentences are divided; names for runs of it cost a few tokens.
_MASK = "X"
_NAME = "Tom"

_AS_THEY_ARE = (AsIs(),)


@dataclass(slots=True)
class SegmentedTexts:
    """The texts of a request, all plain or all protected, and how their sentences pass through the pipeline.

    `deadline` interrupts the pipeline. Plain texts have none: the engine ends their requests.
    """

    texts: list[SegmentedText]
    sentences: list[Sentence]
    is_plain: bool
    is_text: bool  # not a document with markup
    protections: Sequence[Protection]
    run: Runner
    deadline: Deadline
    check: RequestCheck | None = None  # decides which sentences are kept

    def texts_of_sentences(self) -> Iterator[str]:
        """Yield the text of each sentence."""
        return (sentence.written for sentence in self.sentences)

    def item_kinds(self) -> set[ItemKind]:
        """Return the kinds of all items."""
        units = (part for text in self.texts for part in text.document if isinstance(part, Unit))
        return {each.kind for unit in units for each in unit.protected}


def negation_rules_of(request: TranslationRequest) -> NegationRules | None:
    """Return the rules for negations of plain texts; None with a glossary, which plain sentences follow best."""
    has_rules = request.glossary is None and _may_lose_hypotheses(request)
    return negation_rules(request.source, request.target) if has_rules else None


class TextReader:
    """Reads texts and divides them into sentences that one model takes."""

    def __init__(self, tokenizer: Tokenizer, shapes: Shapes, inline_characters: float = INLINE_CHARACTERS) -> None:
        self._tokenizer = tokenizer
        self._inline_characters = inline_characters
        self._max_tokens = shapes.max_source_tokens
        self._unknown = UnknownCharacters(tokenizer.known_characters)
        self._truecasers: dict[tuple[str, bool], Truecaser] = {}

    async def read(
        self, request: TranslationRequest, deadline: Deadline, *, is_special: bool = False
    ) -> SegmentedTexts:
        """Return the segmented texts: plain ones if a plain translation would lose nothing of any text.

        With `is_special` some are known to be special, so that no time is spent on a look for those. Raises
        `InvalidRequest` for XML that is not well-formed, and `DeadlineExceeded`.
        """
        run = self.runner(request, request.num_characters, True, deadline)
        # The look for special texts is short, so that plain ones do not wait for those that are read.
        if not is_special and (plain := await run(self._plain_unless_special, request, run)) is not None:
            return plain
        if (protected := await self._protected_unless_plain(request, deadline)) is not None:
            return protected
        return await run(self._plain, request, run)

    def runner(self, request: TranslationRequest, num_characters: int, is_plain: bool, deadline: Deadline) -> Runner:
        """Return the runner for a stage of a request with texts of this length."""
        # Four blocks of a document at once would hold the event loop for 8 ms each.
        inline_characters = -1 if request.in_background else self._inline_characters
        return runner_for(num_characters, is_plain, deadline, inline_characters)

    def _plain_unless_special(self, request: TranslationRequest, run: Runner) -> SegmentedTexts | None:
        if request.format != "text" or any(map(self.may_be_special, request.texts)):
            return None
        plain = self._plain(request, run)
        if _may_change_case(request) and any(
            map(self.truecaser(request.source).has_unusual_casing, plain.texts_of_sentences())
        ):
            return None
        rules = negation_rules_of(request)
        return None if rules is not None and any(map(rules.of, plain.texts_of_sentences())) else plain

    def truecaser(self, language: str, *, is_target: bool = False) -> Truecaser:
        """Return the truecaser of a language."""
        key = (language, is_target)
        if key not in self._truecasers:
            cost = partial(self._tokenizer.word_cost, is_target=is_target)
            self._truecasers[key] = Truecaser(cost, language)
        return self._truecasers[key]

    def may_be_special(self, text: str) -> bool:
        """Return whether a plain translation of a text might lose something."""
        return may_be_special(text, self._unknown)

    def has_unusual_casing(self, text: str, language: str) -> bool:
        """Return whether a text, or a sentence of it, has a casing of its own."""
        is_unusual = self.truecaser(language).has_unusual_casing
        if not is_surely_usual(text) and is_unusual(text):
            return True
        segments = sentences(text, language)
        return len(segments) > 1 and any(not is_surely_usual(each.text) and is_unusual(each.text) for each in segments)

    async def _protected_unless_plain(self, request: TranslationRequest, deadline: Deadline) -> SegmentedTexts | None:
        run = self.runner(request, request.num_characters, False, deadline)
        texts = await run(self._read_all, request)
        cases = self._cases(request)
        negations = negation_rules_of(request)
        if request.format == "text" and not any(_is_special(text, cases.source, negations) for text in texts):
            return None
        protections = protections_for(
            request.source,
            request.target,
            cases,
            localizes=request.options.localize_numbers,
            exact_terms=_exact_terms(request),
            keeps_negations=_may_lose_hypotheses(request),
        )
        return SegmentedTexts(texts, _all_sentences(texts), False, request.format == "text", protections, run, deadline)

    def _cases(self, request: TranslationRequest) -> CaseRules:
        """Return the rules for capitals; without those of words if an option names parts of the answer."""
        if _may_change_case(request):
            return CaseRules(self.truecaser(request.source), self.truecaser(request.target, is_target=True))
        # These phrases may come first, and are part of the answer as they are written.
        keeps_first = bool(request.options.target_prefix or request.options.required_phrases)
        return CaseRules(Truecaser(_no_cost, request.source), Truecaser(_no_cost, request.target), keeps_first)

    def _plain(self, request: TranslationRequest, run: Runner) -> SegmentedTexts:
        is_whole = request.options.is_about_whole_texts
        texts = [self._plain_text(index, text, request, is_whole) for index, text in enumerate(request.texts)]
        protections: Sequence[Protection] = _AS_THEY_ARE
        if is_whole or request.glossary is not None:
            protections = (AsIs(request.glossary, is_whole, _exact_terms(request)),)
        return SegmentedTexts(texts, _all_sentences(texts), True, True, protections, run, NO_DEADLINE)

    def _plain_text(self, index: int, text: str, request: TranslationRequest, is_whole: bool) -> SegmentedText:
        """Return a text as one unit; its sentences have their tokens if segmentation had to count them."""
        checkpoint()
        text = replace_lone_surrogates(text)
        sources: dict[str, TokenIds] = {}
        in_full = spelled_out(request.source, request.target).in_full

        def fits(part: str) -> bool:
            checkpoint()
            if not any(map(str.isalnum, part)):
                return True  # not decoded, so it may be of any length
            tokens = self._tokenizer.encode(in_full(part), request.target, request.source)
            if len(tokens) > self._max_tokens:
                return False
            sources[part] = tokens
            return True

        unit = Unit(text, text, (), (), str)
        segments = [whole(text)] if is_whole else split(text, request.source, fits)
        sentences = [
            Sentence(index, unit, start, end, len(segment.before), segment.continues, sources.get(segment.text))
            for segment, start, end in _spans(segments)
            if start < end
        ]
        return SegmentedText([unit], {0: sentences})

    def _read_all(self, request: TranslationRequest) -> list[SegmentedText]:
        return [self._segmented(index, text, request) for index, text in enumerate(request.texts)]

    def _segmented(self, index: int, text: str, request: TranslationRequest) -> SegmentedText:
        document = self._document(replace_lone_surrogates(text), request)
        segmented = SegmentedText(document)
        for place, unit in enumerate(document):
            checkpoint()
            if isinstance(unit, Unit):
                segmented.sentences_of[place] = self._sentences(index, unit, request)
        return segmented

    def _document(self, text: str, request: TranslationRequest) -> Document:
        if request.format == "html":
            return to_document(read_html(text, request.markup), self._unknown)
        if request.format == "xml":
            return to_document(read_xml(text, request.markup), self._unknown)
        return (read_whole if request.options.is_about_whole_texts else read_text)(text, self._unknown)

    def _sentences(self, index: int, unit: Unit, request: TranslationRequest) -> list[Sentence]:
        """Divide a unit between protected spans, which count as many tokens as their masks."""
        masked = unit.masked(_MASK, kinds=OPAQUE)
        fits = partial(self._fits, spelled_out(request.source, request.target))
        is_whole = request.options.is_about_whole_texts
        found: list[Sentence] = []
        for segment, start, end in _spans([whole(masked)] if is_whole else split(masked, request.source, fits)):
            if found and unit.is_inside_protected(start):
                found[-1].end = end  # no protected span has two sentences
            elif start < end:
                found.append(Sentence(index, unit, start, end, continues=segment.continues))
        return found

    def _fits(self, abbreviations: SpelledOut, text: str) -> bool:
        checkpoint()
        if not any(map(str.isalnum, text)):
            return True
        text = abbreviations.in_full(text)
        while _MASK * 4 in text:
            text = text.replace(_MASK * 4, _NAME)
        # A sentence in small letters gets a capital, which may take more tokens.
        forms = {text, text[:1].upper() + text[1:]}
        return all(self._tokenizer.count_tokens(form) <= self._max_tokens for form in forms)


def _exact_terms(request: TranslationRequest) -> Glossary | None:
    """Return the glossary that translates whole sentences without the model; None if an option needs hypotheses."""
    options = request.options
    needs_model = options.num_hypotheses > 1 or options.wants_details or options.is_about_whole_texts
    return None if needs_model or options.return_scores else request.glossary


def _all_sentences(texts: Sequence[SegmentedText]) -> list[Sentence]:
    return [sentence for text in texts for sentence in text.sentences]


def _spans(segments: Sequence[Segment]) -> Iterator[tuple[Segment, int, int]]:
    """Yield segments with the start and the end of their text."""
    position = 0
    for segment in segments:
        start = position + len(segment.before)
        end = start + len(segment.text)
        position = end + len(segment.after)
        yield segment, start, end


def _may_change_case(request: TranslationRequest) -> bool:
    return request.glossary is None and not request.options.is_about_whole_texts


def _may_lose_hypotheses(request: TranslationRequest) -> bool:
    """Return whether hypotheses without the negation of their source may be left out."""
    return not (request.options.decodes_independently or request.options.is_about_whole_texts)


def _no_cost(word: str) -> float:
    return 0.0


def _is_special(text: SegmentedText, truecaser: Truecaser, negations: NegationRules | None) -> bool:
    """Return whether there is anything but sentences, white space, and lines without words."""
    document = text.document
    for index, part in enumerate(document):
        if isinstance(part, Unit):
            if not part.is_plain or part.text != part.raw:
                return True
        elif part.strip():
            around = document[max(index - 1, 0) : index + 2]
            if any(map(str.isalnum, part)) or any(isinstance(each, Unit) for each in around):
                return True
    written = [sentence.written for sentence in text.sentences]
    return any(map(truecaser.is_special, written)) or (negations is not None and any(map(negations.of, written)))
