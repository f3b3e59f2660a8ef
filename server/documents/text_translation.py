"""Translation of documents by a `TranslationService`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

from server.documents.report import DocumentReport
from server.documents.rewriting import Translate
from server.text.language_tags import match_language
from server.text.segmentation.sentences import longest_piece, sentences
from server.translation.service import AUTO, TranslationService
from server.translation.types import TranslationRequest, TranslationResult

_DEFAULT_LANGUAGE = "en"  # its rules divide texts of an unknown language
_SEARCHED, _AHEAD = 400, 60  # characters before and behind the end of a part in which its last sentence may end


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
    observe: Callable[[TranslationResult], None],
    blocks: DetectedBlocks | None = None,
) -> Translate:
    """Return functions that translate with the options of `request`, without its texts; `observe` gets every result.

    If the source is `AUTO`, all texts of one call count as one language: a cell or a heading is too short to detect
    one. `blocks` counts these calls. Raises as `TranslationService.check` does.
    """
    into = service.check(request, source, target)
    counted, report = blocks or DetectedBlocks(), DocumentReport()
    # The limit on texts of a request does not apply: documents are cut into small blocks here.
    request = replace(request, size_is_checked=True, joins_lines=False, in_background=True)

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
        observe(done.result)
        report.add(done.result)
        return [translation.text for translation in done.result.translations]

    return Translate(
        text=lambda texts: translate(texts, request),
        html=lambda texts: translate(texts, replace(request, format="html")),
        divide=partial(divide_text, _DEFAULT_LANGUAGE if source in (None, AUTO) else source),
        max_characters=service.max_text_characters,
        report=report,
    )


def divide_text(language: str, text: str, max_characters: int) -> list[str]:
    """Divide a text into parts of as many whole sentences as fit; a longer sentence is cut at a clause.

    Looks for the ends of sentences only where a part may end.
    """
    pieces: list[str] = []
    start = 0
    while len(text) - start > max_characters:
        length = _piece_length(language, text[start : start + max_characters + _AHEAD], max_characters)
        pieces.append(text[start : start + length])
        start += length
    return [*pieces, text[start:]]


def _piece_length(language: str, window: str, max_characters: int) -> int:
    for begin in (max(max_characters - _SEARCHED, 0), 0):
        lengths = (len(each.before + each.text + each.after) for each in sentences(window[begin:], language))
        ends = [end for end in accumulate(lengths, initial=begin) if begin < end <= max_characters]
        if ends:
            return ends[-1]
    return longest_piece(window, lambda piece: len(piece) <= max_characters, language)
