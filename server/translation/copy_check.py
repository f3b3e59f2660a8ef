"""The kinds of items that a model never copies, found by a few requests before the first sentence with such an item."""

from collections.abc import Collection, Mapping, Sequence

from server.interface.engine_client import EngineClient
from server.interface.request import Completion, Request
from server.text.items.kinds import ItemKind
from server.text.items.survival import Answer
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.deadline import NO_DEADLINE
from server.translation.limits import TranslationLimits
from server.translation.sentence_encoder import SentenceEncoder
from server.translation.submission import Submission
from server.translation.types import TranslationRequest

# A small model writes none of these in any hypothesis. Numbers are not tried: each model copies some of them, and the
# others can be corrected.
_SAMPLES: Mapping[ItemKind, Sequence[str]] = {
    ItemKind.EMAIL: ("info@example.com", "anna.k@mail.org"),
    ItemKind.URL: ("https://example.com/help", "www.example.org"),
    ItemKind.PATH: ("/usr/local/bin", "src/main/java"),
    ItemKind.FILE: ("report.pdf", "notes.txt"),
    ItemKind.NAME: ("@anna", "@tom_w"),
    ItemKind.TAG: ("#music", "#news"),
    ItemKind.IDENTIFIER: ("max_length", "--verbose"),
    ItemKind.PLACEHOLDER: ("%s", "{name}"),
    ItemKind.ENTITY: ("&nbsp;", "&amp;"),
    ItemKind.CODE_SPAN: ("`git status`", "`x = y`"),
    ItemKind.SYMBOL: ("🎉", "❤"),
    ItemKind.CODE: ("AB-1234", "X200"),
}


class CopyCheck:
    """Finds out once for each target language and kind of items whether a model never copies them.

    A kind counts as never copied if no hypothesis of any of its samples has the sample. Such items are not sent as they
    are, because every sentence with one would be decoded twice.
    """

    def __init__(self, engine: EngineClient, limits: TranslationLimits, tokenizer: Tokenizer) -> None:
        self._engine = engine
        self._limits = limits
        self._tokenizer = tokenizer
        self._is_copied: dict[tuple[str, ItemKind], bool] = {}

    async def never_copied(self, source: str, target: str, kinds: Collection[ItemKind]) -> frozenset[ItemKind]:
        """Return those of `kinds` that are never copied. Decodes the samples of kinds that it meets first."""
        sampled = [kind for kind in _SAMPLES if kind in kinds]
        if unknown := [kind for kind in sampled if (target, kind) not in self._is_copied]:
            copied = await self._copied(source, target, unknown)
            self._is_copied.update(((target, kind), kind in copied) for kind in unknown)
        return frozenset(kind for kind in sampled if not self._is_copied[target, kind])

    async def _copied(self, source: str, target: str, kinds: Sequence[ItemKind]) -> set[ItemKind]:
        """Return the kinds of which a hypothesis has a sample. None has one that the tokenizer cannot read."""
        readable = [
            (kind, sample)
            for kind in kinds
            for sample in _SAMPLES[kind]
            if self._tokenizer.known_characters.issuperset(sample)
        ]
        request = TranslationRequest(tuple(sample for _, sample in readable), source, target)
        encoder = SentenceEncoder(request, self._limits, self._tokenizer, self._engine.bundle.config)
        requests = [encoder.sample(sample) for _, sample in readable]
        submission = Submission(self._engine, NO_DEADLINE, NO_DEADLINE.clock(), accepted_earlier=True)
        completions = await submission.submit(requests)
        return {
            kind
            for (kind, sample), asked in zip(readable, requests, strict=True)
            if self._has(kind, sample, asked, completions, (source, target))
        }

    def _has(
        self,
        kind: ItemKind,
        sample: str,
        request: Request,
        completions: Mapping[int, Completion],
        languages: tuple[str, str],
    ) -> bool:
        texts = [self._tokenizer.decode(each.token_ids) for each in completions[request.id].hypotheses]
        return any(Answer(text, *languages).find([(kind, sample)])[0] is not None for text in texts)
