"""Scores of translations whose hypotheses are empty."""

import asyncio
from dataclasses import replace

import pytest

from server.interface.decoding_options import DecodingOptions
from server.interface.request import Completion, FinishReason, Hypothesis, Request
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import TranslationRequest
from tests.fakes.echo import EchoGenerator


class _SilentEngine(EchoGenerator):
    """Ends every sentence before its first token."""

    def _complete(self, request: Request) -> Completion:
        done = super()._complete(request)
        return replace(done, hypotheses=[Hypothesis([], -0.5, -0.25, FinishReason.LENGTH)])


@pytest.mark.parametrize(("text", "score", "log_probability"), [("Tea.", -0.25, -0.5), ("Tea. Water.", -0.25, -1.0)])
def test_a_translation_ended_before_its_first_token_has_a_score(
    echo: EchoGenerator, text: str, score: float, log_probability: float
) -> None:
    pipeline = Pipeline(_SilentEngine(echo.bundle), TranslationLimits())
    options = DecodingOptions(max_new_tokens=1, return_scores=True)
    [translation] = asyncio.run(pipeline.translate(TranslationRequest((text,), "en", "de", options))).translations
    assert translation.target_tokens == 0
    assert translation.score == pytest.approx(score)
    assert translation.log_probability == pytest.approx(log_probability)
