"""Translation of documents by a `TranslationService`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from server.documents.report import DocumentReport
from server.documents.rewriting import Translate
from server.text.language_tags import match_language
from server.text.segmentation.sentences import split
from server.translation.service import AUTO, TranslationOutcome, TranslationService
from server.translation.types import TranslationRequest

_DEFAULT_LANGUAGE = "en"  # its rules divide texts of an unknown language


@dataclass(slots=True)
class DetectedBlocks:
    """Numbers of the blocks of a document whose source language was detected."""

    num_translated: int = 0
    num_in_target_language: int = 0

    @property
    def are_in_target_language(self) -> bool:
        """Return whether all of them are in the target language already."""
        return self.num_in_target_language > 0 and self.num_translated == 0


def document_translation(
    service: TranslationService,
    request: TranslationRequest,
    source: str | None,
    target: str | None,
    observe: Callable[[TranslationOutcome], None],
    blocks: DetectedBlocks | None = None,
) -> Translate:
    """Return functions that translate with the options of `request`, without its texts; `observe` gets every result.

    If the source is `AUTO`, all texts of one call count as one language: a cell or a heading is too short to detect
    one. `blocks` counts these calls. Raises as `TranslationService.check` does.
    """
    into = service.check(request, source, target)
    counted, report = blocks or DetectedBlocks(), DocumentReport()
    # The limit on texts of a request does not apply: documents are cut into small blocks here.
    request = replace(request, size_is_checked=True, in_background=True)

    async def translate(texts: Sequence[str], request: TranslationRequest) -> list[str]:
        language = source
        if source == AUTO:
            [detected] = await service.detect(replace(request, texts=("\n".join(texts),)), into)
            if detected is None:
                return list(texts)
            if match_language(detected.language, [into]):
                counted.num_in_target_language += 1
                return list(texts)
            counted.num_translated += 1
            language = detected.language
        done = await service.translate(replace(request, texts=tuple(texts)), language, into)
        observe(done)
        report.add(done.result)
        return [translation.text for translation in done.result.translations]

    return Translate(
        text=lambda texts: translate(texts, request),
        html=lambda texts: translate(texts, replace(request, format="html")),
        divide=partial(_divided, _DEFAULT_LANGUAGE if source in (None, AUTO) else source),
        max_characters=service.max_text_characters,
        report=report,
    )


def _divided(language: str, text: str, max_characters: int) -> list[str]:
    """Divide a text into parts of as many whole sentences as fit; a longer sentence is cut at a clause."""
    pieces = [""]
    for segment in split(text, language, lambda piece: len(piece) <= max_characters):
        sentence = segment.before + segment.text + segment.after
        if len(pieces[-1]) + len(sentence) > max_characters:
            pieces.append("")
        pieces[-1] += sentence
    return pieces if pieces[0] else pieces[1:]
