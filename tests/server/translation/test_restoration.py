"""The choice among hypotheses of which some lost something."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
import pytest

from server.interface.request import Completion, FinishReason, Hypothesis, Request, SentenceParams, Timings
from server.text.protection.means import NegationMeans
from server.text.protection.protected import Losses, Protected, Restored
from server.text.readers.units import Unit
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.restoration import Restorer
from server.translation.sentence_encoder import RequestBuilder
from server.translation.sentences import Job, Sentence

ALL = Losses((0, 1, 2), has_lost_negation=True)


class _Letters:
    """A tokenizer whose tokens are letters."""

    def decode(self, token_ids: list[int]) -> str:
        """Return the text of tokens."""
        return "".join(map(chr, token_ids))


@dataclass
class _Protected:
    """A part that loses something in some answers, and in others when it is corrected. All others are whole."""

    lost: Mapping[str, Losses]
    corrected: Mapping[str, Losses]
    text: str = "source"

    def restore(self, answer: str, _attention: object, *, corrects: bool = False) -> Restored | Losses:
        """Return the answer, or what it lost."""
        return (self.corrected if corrects else self.lost).get(answer) or Restored(answer)


def _restorer(num_hypotheses: int) -> Restorer:
    tokenizer = cast(Tokenizer, _Letters())
    return Restorer(tokenizer, RequestBuilder(tokenizer, "en", "de", None), num_hypotheses)


def _restored(
    answers: str, lost: Mapping[str, Losses], corrected: Mapping[str, Losses], num_hypotheses: int = 1
) -> tuple[Sentence, list[str]]:
    """Return a sentence after a round with these hypotheses, and its answers."""
    request = Request(np.zeros(1, np.int32), SentenceParams(), Timings(0.0))
    job = Job(cast(Protected, _Protected(lost, corrected)), request)
    sentence = Sentence(0, Unit("source", "source", (), (), str), 0, 6, parts=[job], jobs=[job])
    hypotheses = [Hypothesis([ord(each)], 0.0, 0.0, FinishReason.STOP) for each in answers]
    restorer = _restorer(num_hypotheses)
    left = restorer.restore([sentence], {request.id: Completion(request, hypotheses, FinishReason.STOP)})
    assert left == ([] if job.answers else [sentence])
    return sentence, [restored.text for restored, _ in job.answers]


@pytest.mark.parametrize(
    ("lost", "indices"),
    [
        ({"a": Losses((0, 1)), "b": Losses((2,)), "c": ALL}, (2,)),
        ({"a": Losses((0,)), "b": Losses((1,)), "c": ALL}, (0,)),  # the better of two
        ({"a": Losses((), has_invented=True), "b": ALL, "c": Losses((0, 2))}, (0, 2)),
    ],
)
def test_the_hypothesis_that_lost_fewest_items_decides_the_next_round(
    lost: Mapping[str, Losses], indices: tuple[int, ...]
) -> None:
    sentence, answers = _restored("abc", lost, dict.fromkeys("abc", ALL))
    assert answers == []
    assert sentence.lost == indices
    assert sentence.negation_means is NegationMeans.HYPOTHESES


def test_a_lost_negation_has_other_means_in_the_next_round() -> None:
    sentence, _ = _restored("a", {"a": ALL}, {"a": ALL})
    assert sentence.negation_means is not NegationMeans.HYPOTHESES


def test_whole_hypotheses_are_the_answers_before_corrected_ones() -> None:
    assert _restored("abc", {"a": ALL}, {}, 2)[1] == ["b", "c"]
    assert _restored("abc", {"a": ALL, "b": ALL}, {}, 2)[1] == ["c"]
    assert _restored("abc", dict.fromkeys("abc", ALL), {"a": ALL}, 1)[1] == ["b"]


def test_a_sentence_without_a_completion_is_left() -> None:
    request = Request(np.zeros(1, np.int32), SentenceParams(), Timings(0.0))
    job = Job(cast(Protected, _Protected({}, {})), request)
    sentence = Sentence(0, Unit("source", "source", (), (), str), 0, 6, parts=[job], jobs=[job])
    assert _restorer(1).restore([sentence], {}) == [sentence]
