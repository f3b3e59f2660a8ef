"""Choice of the form of address among the hypotheses of a sentence, for models without a tag for it."""

from collections.abc import Iterator, Sequence

from server.interface.request import Hypothesis, Tokens
from server.text.formality import Formality, formality_rules
from server.text.protection.protected import Restored
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.sentences import Job, Sentence
from server.translation.types import TranslationRequest

_WRONG = 2
_MAX_LOWER_SCORE = 0.3  # of a neutral answer: the search that avoids words may find one that says something else

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
        return sorted(answers, key=lambda answer: self._rank(source, answer[0].text))

    def is_wrong(self, sentence: Sentence) -> bool:
        """Return whether the best answer of a part of a sentence has the wrong form."""
        return any(self._is_wrong_job(job) for job in sentence.jobs)

    def improves(self, sentence: Sentence, earlier: Sequence[Job]) -> bool:
        """Return whether new answers have the form that is wanted, or none at hardly a lower score, in every part."""
        if len(sentence.jobs) != len(earlier):
            return False
        return all(self._improves_job(new, old) for new, old in zip(sentence.jobs, earlier, strict=True))

    def suppressed(self, tokenizer: Tokenizer) -> tuple[Tokens, ...]:
        """Return the words of the other form of address, as tokens that a search can avoid."""
        return tuple(dict.fromkeys(self._phrases(tokenizer)))

    def _phrases(self, tokenizer: Tokenizer) -> Iterator[Tokens]:
        for word in self._rules.spellings(self._form.opposite):
            tokens = tuple(tokenizer.encode_target(word))
            if tokens and tokenizer.unknown_token not in tokens:
                yield tokens

    def _improves_job(self, new: Job, old: Job) -> bool:
        if not new.answers or not old.answers:
            return bool(new.answers)
        rank = self._rank(new.protected.text, new.answers[0][0].text)
        return rank == 0 or (rank < _WRONG and new.answers[0][1].score >= old.answers[0][1].score - _MAX_LOWER_SCORE)

    def _is_wrong_job(self, job: Job) -> bool:
        return bool(job.answers) and self._rank(job.protected.text, job.answers[0][0].text) == _WRONG

    def _rank(self, source: str, translation: str) -> int:
        """Return 0 for the form that is wanted, 1 for none, 2 for the other one."""
        forms = self._rules.forms(source, self._source, translation)
        return _WRONG if self._form.opposite in forms else 0 if forms else 1
