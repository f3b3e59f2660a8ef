"""Blocks of a document through a service: languages of whole blocks, formats, and reports."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from server.documents.text_translation import DetectedBlocks, document_translation
from server.interface.request import FinishReason
from server.text.language_detection import Detection
from server.translation.service import AUTO, TranslationOutcome
from server.translation.types import Phases, TokenCounts, Translation, TranslationRequest, TranslationResult


@dataclass
class Service:
    """Answers in capitals. `languages` are those of the blocks, in their order."""

    languages: list[str | None] = field(default_factory=list)
    calls: list[tuple[TranslationRequest, str | None, str | None]] = field(default_factory=list)
    detected: list[tuple[str, ...]] = field(default_factory=list)
    max_text_characters: int | None = 500

    def check(self, request: TranslationRequest, source: str | None, target: str | None) -> str:
        """Return the target."""
        return target or "de"

    async def detect(self, request: TranslationRequest, target: str | None = None) -> list[Detection | None]:
        """Return the next language."""
        self.detected.append(request.texts)
        language = self.languages.pop(0)
        return [None if language is None else Detection(language, 0.9)]

    async def translate(
        self, request: TranslationRequest, source: str | None, target: str | None
    ) -> TranslationOutcome:
        """Return the texts in capitals."""
        self.calls.append((request, source, target))
        translations = [Translation(text.upper(), 1, 1, FinishReason.STOP, 0.0) for text in request.texts]
        result = TranslationResult(translations, Phases(), TokenCounts.of(()), 0, outcomes={"repaired": 1})
        return TranslationOutcome(result, (), ())


def _blocks(service: Service, source: str, *blocks: Sequence[str]) -> tuple[list[list[str]], DetectedBlocks, int]:
    counted = DetectedBlocks()
    seen: list[TranslationOutcome] = []
    request = TranslationRequest((), "", "")
    translate = document_translation(service, request, source, "de", seen.append, counted)  # type: ignore[arg-type]

    async def run() -> list[list[str]]:
        return [list(await translate.text(block)) for block in blocks]

    done = asyncio.run(run())
    assert translate.report.repaired == len(seen)
    assert translate.max_characters == 500
    return done, counted, len(seen)


def test_a_block_has_one_language_and_stays_if_it_is_the_target_or_none() -> None:
    service = Service(["en", "de-AT", None, "fr"])
    done, counted, num_seen = _blocks(service, AUTO, ["a", "b"], ["c"], ["7"], ["d"])
    assert done == [["A", "B"], ["c"], ["7"], ["D"]]
    assert service.detected == [("a\nb",), ("c",), ("7",), ("d",)]
    assert [(source, target) for _, source, target in service.calls] == [("en", "de"), ("fr", "de")]
    assert (counted.num_translated, counted.num_in_target_language, num_seen) == (2, 1, 2)
    assert not counted.are_in_target_language


@pytest.mark.parametrize(
    ("languages", "expected"), [(["de"], True), (["de", "de"], True), (["de", "en"], False), ([None], False)]
)
def test_a_document_is_in_the_target_language_if_all_its_blocks_are(
    languages: list[str | None], expected: bool
) -> None:
    _, counted, _ = _blocks(Service(list(languages)), AUTO, *[["a"]] * len(languages))
    assert counted.are_in_target_language is expected
