"""An engine that answers by a rule, and a bundle whose tokenizer has all characters of Unicode."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np

from bundle.loading import Bundle
from bundle.manifest import Repair, SpanCopying, TokenizerDescription
from server.interface.decoding_options import DecodingOptions
from server.interface.request import Completion, Hypothesis, Request, TokenDetails
from server.text.tokenizers.registry import open_tokenizer
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import TextFormat, Translation, TranslationRequest
from tests.fakes.echo import EchoGenerator
from tests.fakes.engine import fake_bundle

Rule = Callable[[str], str | Sequence[str]]


def replacing(words: Mapping[str, str]) -> Rule:
    """Return the rule of a model that writes other words for these."""

    def rule(text: str) -> str:
        for word, translation in words.items():
            text = text.replace(word, translation)
        return text

    return rule


MAX_TOKENS = 4096


def byte_bundle(
    source: str = "en",
    target: str = "de",
    *,
    repairs: tuple[Repair, ...] = (),
    copying: SpanCopying | None = None,
    max_tokens: int = MAX_TOKENS,
) -> Bundle:
    """Return a bundle without files, whose tokens are bytes. It has the `repairs` for its pair of languages."""
    config = fake_bundle(300, max_tokens).config
    special = config.special_tokens.model_copy(update={"decoder_start": 0, "end_of_sequence": 1, "padding": 0})
    return Bundle(
        Path("no-such-bundle"),
        config.model_copy(
            update={
                "name": f"{source}-{target}",
                "source_languages": (source,),
                "target_languages": (target,),
                "tokenizer": TokenizerDescription(kind="bytes"),
                "shapes": config.shapes.model_copy(update={"max_source_tokens": max_tokens}),
                "special_tokens": special,
                "repairs": {f"{source}-{target}": repairs} if repairs else {},
                "copying": copying,
            }
        ),
    )


def translated(
    engine: EchoGenerator, *texts: str, format_: TextFormat = "text", **options: object
) -> list[Translation]:
    """Return the translations of texts in the languages of an engine, also of those that are in the target language.

    The texts of a `RuleEngine` are read by one pipeline, however often it is called.
    """
    config = engine.bundle.config
    wanted = DecodingOptions.given({"if_already_target": "translate", **options})
    request = TranslationRequest(texts, config.source_languages[0], config.target_languages[0], wanted, format=format_)
    pipeline = engine.pipeline if isinstance(engine, RuleEngine) else Pipeline(engine, TranslationLimits())
    return asyncio.run(pipeline.translate(request)).translations


class RuleEngine(EchoGenerator):
    """Answers with what `rule` makes of the text that the model reads: one text, or several hypotheses, best first."""

    def __init__(self, bundle: Bundle, rule: Rule = str) -> None:
        super().__init__(bundle)
        self.rule = rule
        self.tokenizer = open_tokenizer(bundle)

    @cached_property
    def pipeline(self) -> Pipeline:
        """The pipeline of its model, whose `rule` a test may replace."""
        return Pipeline(self, TranslationLimits())

    @property
    def read(self) -> list[str]:
        """The texts that the model has read, call by call; in a call, the longest first."""
        return [self._text_of(each) for batch in self.batches for each in batch]

    def answers(self, request: Request) -> Sequence[str]:
        """Return the hypotheses for a request."""
        found = self.rule(self._text_of(request))
        return [found] if isinstance(found, str) else found

    def _text_of(self, request: Request) -> str:
        return self.tokenizer.decode(request.source.tolist())

    def _complete(self, request: Request) -> Completion:
        done = super()._complete(request)
        if not done.hypotheses:
            return done
        hypotheses = []
        for rank, text in enumerate(self.answers(request)[: request.params.num_hypotheses]):
            tokens = list(self.tokenizer.encode_target(text))
            details = None
            if request.params.return_attention:
                # On the source token at the same place, as of a model that translates word by word.
                places = np.arange(len(tokens) + 1) * len(request.source) // (len(tokens) + 1)
                weights = np.full((len(tokens) + 1, len(request.source)), 0.01, np.float32)
                weights[np.arange(len(tokens) + 1), places] = 1.0
                details = TokenDetails([], [], weights)
            score = -0.1 * (rank + 1)
            hypotheses.append(Hypothesis(tokens, score * len(tokens), score, self.finish_reason, details))
        return replace(done, hypotheses=hypotheses)
