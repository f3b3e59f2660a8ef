"""A pipeline whose model returns its input, with the attention of such a model."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bundle.loading import Bundle
from server.interface.request import Completion, Request, TokenDetails
from server.text.readers.pieces import NO_MARKUP_OPTIONS, MarkupOptions
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import TextFormat, TranslationRequest
from tests.fakes.echo import SENTENCES, EchoGenerator

# Sentences with every letter and mark of ordinary texts, so that a tokenizer trained on them has them all.
LETTERS = (
    *SENTENCES,
    *(f"{letter}{letter.upper()} {letter.upper()}{letter}" for letter in "abcdefghijklmnopqrstuvwxyzäöüß"),
    *(f"{mark} a{mark} {mark}a" for mark in "0123456789.,;:!?()[]{}<>&%$#@*_-+=/|'~^`\\\""),
)


class IdentityEngine(EchoGenerator):
    """An echo whose attention is on the repeated token; all of its hypotheses are equal."""

    def _complete(self, request: Request) -> Completion:
        done = super()._complete(request)
        best = done.hypotheses[0]
        if request.params.return_attention:
            best = replace(best, details=TokenDetails([], [], np.eye(len(request.source), dtype=np.float32)))
        return replace(done, hypotheses=[best] * len(done.hypotheses))


class Identity:
    """Translates texts into themselves."""

    def __init__(self, bundle: Bundle) -> None:
        self.engine = IdentityEngine(bundle)
        self.pipeline = Pipeline(self.engine, TranslationLimits())

    def __call__(
        self, texts: Sequence[str], format_: TextFormat = "text", markup: MarkupOptions = NO_MARKUP_OPTIONS
    ) -> list[str]:
        """Return the translations."""
        request = TranslationRequest(tuple(texts), "en", "de", format=format_, markup=markup)
        return [translation.text for translation in asyncio.run(self.pipeline.translate(request)).translations]

    @property
    def model_inputs(self) -> list[str]:
        """The texts of all requests so far."""
        tokenizer = self.pipeline.tokenizer
        return [tokenizer.decode(each.source.tolist()) for batch in self.engine.batches for each in batch]
