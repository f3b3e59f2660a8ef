"""Choice of the form of address among the hypotheses of a sentence, for models without a tag for it."""

from collections.abc import Sequence
from dataclasses import replace

from server.interface.request import Hypothesis, Tokens
from server.text.formality import Formality, formality_rules
from server.text.protection.masked_sentence import Restored
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.reading import Job, SegmentedText, Sentence
from server.translation.types import TranslationRequest, TranslationResult

_WRONG = 2
# By how much the score of an answer may be lower than that of the best one, and the share of its words that it must
# have: with the form that is wanted, and without any. Another answer may say something else.
_BOUNDS = ((1.0, 0.6), (0.3, 0.75))

Answer = tuple[Restored, Hypothesis]
Answers = Sequence[tuple[Restored, Hypothesis]]


class FormalityChoice:
    """Prefers hypotheses with one form of address.

    A sentence whose best hypothesis is neutral does not change, except with `is_address`: sentences that have an
    address for certain.
    """

    def __init__(self, form: Formality, source: str, target: str, *, is_address: bool = False) -> None:
        self._is_address = is_address
        self._form = form
        self._source = source
        self._target = target
        self._rules = formality_rules(target)

    @classmethod
    def of(cls, request: TranslationRequest) -> "FormalityChoice | None":
        """Return the choice for a request; None if its form of address does not matter."""
        return None if request.formality is None else cls(request.formality, request.source, request.target)

    def of_addresses(self) -> "FormalityChoice":
        """Return the choice for sentences that have an address."""
        return FormalityChoice(self._form, self._source, self._target, is_address=True)

    def ordered(self, source: str, answers: Answers) -> Answers:
        """Return the answers to a source, best first: in their order unless the first one has the wrong form."""
        if not answers or (not self._is_address and self._rank(source, answers[0][0].text) < _WRONG):
            return answers
        best = answers[0]
        return sorted(answers, key=lambda answer: self._rank_beside(best, source, answer))

    def with_mismatches(self, result: TranslationResult, texts: Sequence[SegmentedText]) -> TranslationResult:
        """Return a result whose translations name their sentences with the wrong form."""
        mismatches = [
            [
                job.answers[0][0].with_outputs()
                for sentence in text.sentences
                if sentence.kept is None
                for job in sentence.jobs
                if self._is_wrong_job(job)
            ]
            for text in texts
        ]
        translations = [
            replace(translation, formality_mismatches=tuple(wrong))
            for translation, wrong in zip(result.translations, mismatches, strict=True)
        ]
        return replace(result, translations=translations)

    def is_wrong(self, sentence: Sentence) -> bool:
        """Return whether the best answer of a part of a sentence has the wrong form."""
        return any(map(self._is_wrong_job, sentence.jobs))

    def improves(self, sentence: Sentence, earlier: Sequence[Job]) -> bool:
        """Return whether new answers have the form that is wanted, or none at hardly a lower score, in every part."""
        return len(sentence.jobs) == len(earlier) and all(
            self._rank_beside(old.answers[0], new.part.text, new.answers[0]) < _WRONG
            for new, old in zip(sentence.jobs, earlier, strict=True)
        )

    def suppressed(self, tokenizer: Tokenizer) -> tuple[Tokens, ...]:
        """Return the words of the other form of address, as tokens that a search can avoid."""
        phrases = [tuple(tokenizer.encode_target(word)) for word in self._rules.spellings(self._form.opposite)]
        return tuple(dict.fromkeys(each for each in phrases if each and tokenizer.unknown_token not in each))

    def _is_wrong_job(self, job: Job) -> bool:
        return self._rank(job.part.text, job.answers[0][0].text) == _WRONG

    def _rank_beside(self, best: Answer, source: str, answer: Answer) -> int:
        """Return the rank of an answer; that of the wrong form if it probably says something else than the best one.

        A form that is wanted may cost more than none, because other words stand for it.
        """
        rank = self._rank(source, answer[0].text)
        if answer is best:
            return rank
        (restored, hypothesis), (best_restored, best_hypothesis) = answer, best
        max_lower, min_share = _BOUNDS[min(rank, 1)]
        is_near = hypothesis.score >= best_hypothesis.score - max_lower
        is_whole = len(restored.text.split()) >= min_share * len(best_restored.text.split())
        return rank if is_near and is_whole else _WRONG

    def _rank(self, source: str, translation: str) -> int:
        """Return 0 for the form that is wanted, 1 for none, 2 for the other one."""
        forms = self._rules.forms(source, self._source, translation)
        return _WRONG if self._form.opposite in forms else 0 if forms else 1
