"""From hypotheses to text, with everything that was protected."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from server.interface.interruption import checkpoint
from server.interface.request import Completion, Hypothesis
from server.text.protection.protected_sentence import Restored, TokenAttention
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.formality_choice import Answers, FormalityChoice
from server.translation.sentences import Job, Sentence


class Restorer:
    """Decodes completions, and restores sentences from them."""

    def __init__(self, tokenizer: Tokenizer, num_hypotheses: int, choice: FormalityChoice | None = None) -> None:
        self._tokenizer = tokenizer
        self._num_hypotheses = num_hypotheses
        self._choice = choice

    def restore(self, sentences: Iterable[Sentence], completions: Mapping[int, Completion]) -> list[Sentence]:
        """Give sentences their answers, and return those that lost something in all hypotheses of a part."""
        return [sentence for sentence in sentences if not self._is_restored(sentence, completions)]

    def _is_restored(self, sentence: Sentence, completions: Mapping[int, Completion]) -> bool:
        checkpoint()
        lost_something = not sentence.parts
        for job in sentence.jobs:
            completion = completions.get(job.request.id)
            if completion is None:
                return False  # this round's protection was not applicable
            job.completion = completion
            job.answers = self._answers(job, completion.hypotheses)
            lost_something |= not job.answers
        return not lost_something

    def _answers(self, job: Job, hypotheses: Sequence[Hypothesis]) -> Answers:
        """Return as many of the hypotheses as are wanted, restored, without those that lost something."""
        answers: list[tuple[Restored, Hypothesis]] = []
        for hypothesis in hypotheses:
            text = self._tokenizer.decode(hypothesis.token_ids)
            attention = self._attention(job, hypothesis, text) if job.request.params.return_attention else None
            restored = job.protected.restore(text, attention)
            if restored is not None:
                answers.append((restored, hypothesis))
                if len(answers) == self._num_hypotheses and self._choice is None:
                    break
        if self._choice is None:
            return answers
        return self._choice.ordered(job.protected.text, answers)[: self._num_hypotheses]

    def _attention(self, job: Job, hypothesis: Hypothesis, text: str) -> TokenAttention | None:
        """Return the attention between a text and the model input; None unless it was recorded for these tokens."""
        if hypothesis.details is None or hypothesis.details.attention is None:
            return None
        weights = hypothesis.details.attention[: len(hypothesis.token_ids)]
        source_spans = self._tokenizer.source_spans(job.protected.text)
        target_spans = self._tokenizer.target_spans(hypothesis.token_ids, text)
        if weights.shape != (len(target_spans), len(source_spans)):
            return None
        return TokenAttention(np.ascontiguousarray(weights), source_spans, target_spans)
