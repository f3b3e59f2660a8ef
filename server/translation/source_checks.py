"""Choice of the sentences of a request whose source is kept."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial

from server.interface.interruption import checkpoint
from server.interface.request import Hypothesis
from server.text.items.kinds import ItemKind
from server.text.protection.protected import Restored
from server.text.protection.protected_sentence import unchanged
from server.text.source_check import KeepReason, SourceCheck
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.limits import TranslationLimits
from server.translation.sentences import Sentence
from server.translation.submission import num_tokens
from server.translation.types import KeptSentence, TranslationRequest

# Items that say nothing about the language of a sentence: all but words with characters that the vocabulary lacks.
_ITEMS = frozenset(ItemKind) - {ItemKind.WORD}
# Items that look like code in a sentence that is none.
_MARKUP = frozenset(
    (ItemKind.PLACEHOLDER, ItemKind.CODE_SPAN, ItemKind.MARKUP, ItemKind.ENTITY, ItemKind.TAG, ItemKind.NAME)
)

_MAX_WORDS = 4096  # whose cost is remembered: it takes 10 microseconds


class RequestCheck:
    """Decides for the sentences of one request. Thread-safe."""

    def __init__(self, check: SourceCheck, request: TranslationRequest, limits: TranslationLimits) -> None:
        self._check = check
        self._glossary = request.glossary
        self._keeps_target = limits.keeps_target(request.options)
        self._keeps_others = limits.keeps_untranslatable(request.options)
        options = request.options
        # A client that asks for more than one translation, or for samples, expects them.
        self.doubts = self._keeps_others and not (
            options.num_hypotheses > 1 or options.decodes_independently or options.wants_details
        )

    def reason(self, text: str, code: str | None = None) -> KeepReason | None:
        """Return the reason to keep a sentence without items; None to translate it. `code` has items as in code."""
        if self._glossary is not None and self._glossary.target_terms(text):
            return None
        return self._check.reason(
            text, text if code is None else code, keeps_target=self._keeps_target, keeps_others=self._keeps_others
        )

    def reasons(self, sentences: Iterable[str]) -> dict[str, KeepReason]:
        """Return the reasons to keep sentences without items, by sentence; only of those that are kept."""
        found: dict[str, KeepReason] = {}
        for text in sentences:
            checkpoint()
            if (reason := self.reason(text)) is not None:
                found[text] = reason
        return found

    def mark(self, sentences: Iterable[Sentence]) -> None:
        """Set `kept` of the sentences whose source is kept."""
        for sentence in sentences:
            checkpoint()
            span = (sentence.start, sentence.end)
            text = sentence.unit.masked(" ", *span, kinds=_ITEMS)
            if any(map(str.isalpha, text)):
                sentence.kept = self.reason(text, sentence.unit.masked(" ", *span, kinds=_MARKUP))

    def is_doubtful(self, text: str, best: Hypothesis) -> bool:
        """Return whether the source of a sentence is kept although it was decoded."""
        return self.doubts and self._check.is_doubtful(text, best.log_probability / max(num_tokens(best), 1))

    def mark_doubtful(self, sentences: Iterable[Sentence]) -> None:
        """Restore the sources of sentences that were decoded and that the model does not understand."""
        for sentence in sentences:
            if len(sentence.jobs) != 1 or len(sentence.parts) != 1:
                continue
            [job] = sentence.jobs
            if job.answers and self.is_doubtful(sentence.written, job.answers[0][1]):
                sentence.kept = KeepReason.UNINTELLIGIBLE
                job.answers = [(source_of(sentence), hypothesis) for _, hypothesis in job.answers]


class SourceChecks:
    """The checks of one model, by languages."""

    def __init__(self, tokenizer: Tokenizer, limits: TranslationLimits) -> None:
        self._cost = lru_cache(_MAX_WORDS)(partial(tokenizer.word_cost))
        self._limits = limits
        self._checks: dict[tuple[str, str], SourceCheck] = {}

    def of(self, request: TranslationRequest) -> RequestCheck | None:
        """Return the check of a request; None if all its sentences are translated."""
        options = request.options
        if options.is_about_whole_texts:
            return None
        if not (self._limits.keeps_target(options) or self._limits.keeps_untranslatable(options)):
            return None
        languages = (request.source, request.target)
        if languages not in self._checks:
            self._checks[languages] = SourceCheck(self._cost, *languages)
        return RequestCheck(self._checks[languages], request, self._limits)


def source_of(sentence: Sentence) -> Restored:
    """Return a sentence that is not translated."""
    if sentence.unit.is_plain:
        return Restored(sentence.written)
    return unchanged(sentence.unit, (sentence.start, sentence.end))


def kept_counts(kept: Iterable[Iterable[KeptSentence]]) -> Mapping[KeepReason, int]:
    """Return how many sentences were kept for each reason."""
    counts: dict[KeepReason, int] = {}
    for sentences in kept:
        for each in sentences:
            counts[each.reason] = counts.get(each.reason, 0) + 1
    return counts


def with_whole_text(
    kept: Sequence[KeptSentence], text: str, translation: str, *, is_decoded: bool
) -> tuple[KeptSentence, ...]:
    """Return the kept sentences of a text; a text without words is one, although it has no sentence."""
    if kept or is_decoded or translation != text or not (visible := text.strip()):
        return tuple(kept)
    return (KeptSentence(visible, KeepReason.NO_WORDS),)
