"""Documents over an interpreter: what the formats ask of a translation, asked of the models."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from server.documents.rewriting import Translate
from server.text.language_tags import match_language
from server.text.segmentation.sentences import split
from server.translation.service import AUTO, TranslationOutcome, TranslationService
from server.translation.types import TranslationRequest

_DEFAULT_LANGUAGE = "en"  # whose rules tell where a text may be divided while its language is not known


def document_translation(
    interpreter: TranslationService,
    asked: TranslationRequest,
    source: str | None,
    target: str | None,
    observe: Callable[[TranslationOutcome], None],
) -> Translate:
    """Translate as `asked`, whose texts do not count; `observe` is told every result.

    Where the source is `AUTO`, the texts that a format hands over at once are in one language: a cell or a heading says
    too little by itself. Raises as `TranslationService.check` does.
    """
    into = interpreter.check(asked, source, target)
    # How many texts a request may have is no limit for documents, which are cut into small blocks here.
    asked = replace(asked, size_is_checked=True)

    async def translate(texts: Sequence[str], asked: TranslationRequest) -> list[str]:
        language = source
        if source == AUTO:
            [detected] = await interpreter.detect(replace(asked, texts=("\n".join(texts),)))
            if detected is None or match_language(detected.language, [into]):
                return list(texts)
            language = detected.language
        done = await interpreter.translate(replace(asked, texts=tuple(texts)), language, into)
        observe(done)
        return [translation.text for translation in done.result.translations]

    return Translate(
        text=lambda texts: translate(texts, asked),
        html=lambda texts: translate(texts, replace(asked, format="html")),
        divide=partial(_divided, _DEFAULT_LANGUAGE if source in (None, AUTO) else source),
        max_characters=interpreter.max_text_characters,
    )


def _divided(language: str, text: str, max_characters: int) -> list[str]:
    """The text in pieces of whole sentences, as many as fit; a sentence that does not fit is cut at a clause."""
    pieces = [""]
    for segment in split(text, language, lambda piece: len(piece) <= max_characters):
        sentence = segment.before + segment.text + segment.after
        if len(pieces[-1]) + len(sentence) > max_characters:
            pieces.append("")
        pieces[-1] += sentence
    return pieces if pieces[0] else pieces[1:]
