"""The kinds of items that a model never copies, found by a few requests before the first sentence with such an item."""

from collections.abc import Iterable, Mapping, Sequence

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
    """Finds out once for each target language which kinds of items a model never copies.

    A kind counts as never copied if no hypothesis of any of its samples has the sample. Such items are not sent as they
    are, because every sentence with one would be decoded twice.
    """

    def __init__(self, engine: EngineClient, limits: TranslationLimits, tokenizer: Tokenizer) -> None:
        self._engine = engine
        self._limits = limits
        self._tokenizer = tokenizer
        self._found: dict[str, frozenset[ItemKind]] = {}

    async def never_copied(self, source: str, target: str, kinds: Iterable[ItemKind]) -> frozenset[ItemKind]:
        """Return the kinds that are never copied. Decodes only if one of `kinds` has samples."""
        if target not in self._found:
            if _SAMPLES.keys().isdisjoint(kinds):
                return frozenset()
            self._found[target] = await self._check(source, target)
        return self._found[target]

    async def _check(self, source: str, target: str) -> frozenset[ItemKind]:
        readable = [
            (kind, sample)
            for kind, samples in _SAMPLES.items()
            for sample in samples
            if self._tokenizer.known_characters.issuperset(sample)
        ]
        request = TranslationRequest(tuple(sample for _, sample in readable), source, target)
        encoder = SentenceEncoder(request, self._limits, self._tokenizer, self._engine.bundle.config)
        requests = [encoder.sample(sample) for _, sample in readable]
        submission = Submission(self._engine, NO_DEADLINE, NO_DEADLINE.clock(), accepted_earlier=True)
        completions = await submission.submit(requests)
        copied = {
            kind
            for (kind, sample), asked in zip(readable, requests, strict=True)
            if self._is_copied(kind, sample, asked, completions, (source, target))
        }
        return frozenset(_SAMPLES) - copied

    def _is_copied(
        self,
        kind: ItemKind,
        sample: str,
        request: Request,
        completions: Mapping[int, Completion],
        languages: tuple[str, str],
    ) -> bool:
        texts = [self._tokenizer.decode(each.token_ids) for each in completions[request.id].hypotheses]
        return any(Answer(text, *languages).find([(kind, sample)])[0] is not None for text in texts)
