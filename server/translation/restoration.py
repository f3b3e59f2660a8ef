"""From hypotheses to text, with everything that was protected."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from server.interface.interruption import checkpoint
from server.interface.request import Completion, Hypothesis
from server.text.protection.means import KeptItem, Means, next_negation_means
from server.text.protection.protected import Losses, Restored, TokenAttention
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.formality_choice import Answers, FormalityChoice
from server.translation.sentence_encoder import RequestBuilder
from server.translation.sentences import Job, Sentence


class Restorer:
    """Decodes completions, and restores sentences from them."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        encoder: RequestBuilder,
        num_hypotheses: int,
        choice: FormalityChoice | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._encoder = encoder
        self._num_hypotheses = num_hypotheses
        self._choice = choice

    def restore(self, sentences: Iterable[Sentence], completions: Mapping[int, Completion]) -> list[Sentence]:
        """Give sentences their answers, and return those that lost something in all hypotheses of a part."""
        return [sentence for sentence in sentences if not self._is_restored(sentence, completions)]

    def _is_restored(self, sentence: Sentence, completions: Mapping[int, Completion]) -> bool:
        checkpoint()
        is_whole = bool(sentence.parts)
        for job in sentence.jobs:
            completion = completions.get(job.request.id)
            if completion is None:
                return False  # this round's protection was not applicable
            job.completion = completion
            job.answers, lost = self._answers(job, completion.hypotheses)
            if not job.answers:
                sentence.lost = lost.indices
                if lost.has_lost_negation:
                    beam_size = job.request.params.beam_size
                    sentence.negation_means = next_negation_means(sentence.negation_means, beam_size)
                is_whole = False
        return is_whole

    def _answers(self, job: Job, hypotheses: Sequence[Hypothesis]) -> tuple[Answers, Losses]:
        """Return as many of the hypotheses as are wanted, restored, without those that lost something.

        If all did, one is corrected if that is possible; else the result is what the best of them lost.
        """
        answers: list[tuple[Restored, Hypothesis]] = []
        fewest: Losses | None = None
        texts = [self._tokenizer.decode(hypothesis.token_ids) for hypothesis in hypotheses]
        for corrects in (False, True):
            for rank, (hypothesis, text) in enumerate(zip(hypotheses, texts, strict=True)):
                attention = self._attention(job, hypothesis, text) if job.request.params.return_attention else None
                restored = job.protected.restore(text, attention, corrects=corrects)
                if isinstance(restored, Losses):
                    is_fewer = fewest is None or len(restored.indices) < len(fewest.indices)
                    if is_fewer and not restored.has_invented:  # the next pass allows that
                        fewest = restored
                    continue
                if rank and not corrects:
                    restored.kept = [_of_hypothesis(item) for item in restored.kept]
                answers.append((restored, hypothesis))
                if len(answers) == self._num_hypotheses and self._choice is None:
                    break
            if answers:
                break
        if self._choice is None:
            return answers, fewest or Losses(())
        return self._choice.ordered(job.protected.text, answers)[: self._num_hypotheses], fewest or Losses(())

    def _attention(self, job: Job, hypothesis: Hypothesis, text: str) -> TokenAttention | None:
        """Return the attention between a text and the model input; None unless it was recorded for these tokens."""
        if hypothesis.details is None or hypothesis.details.attention is None:
            return None
        weights = hypothesis.details.attention[: len(hypothesis.token_ids)]
        source_spans = self._encoder.source_spans(job.protected.text)
        target_spans = self._tokenizer.target_spans(hypothesis.token_ids, text)
        if weights.shape != (len(target_spans), len(source_spans)):
            return None
        return TokenAttention(np.ascontiguousarray(weights), source_spans, target_spans)


def _of_hypothesis(item: KeptItem) -> KeptItem:
    """Return an item of another hypothesis than the best one."""
    return replace(item, means=Means.HYPOTHESIS) if item.means is Means.AS_IS else item
