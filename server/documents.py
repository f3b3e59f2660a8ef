"""Documents over a translator: what the formats ask of a translation, asked of a model."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from server.files.document import Translate
from server.translation import TranslationRequest, TranslationResult
from server.translator import Translator


def document_translation(
    translator: Translator, asked: TranslationRequest, observe: Callable[[TranslationResult], None]
) -> Translate:
    """Translate as `asked`, whose texts do not count; `observe` is told every result."""

    async def translate(texts: Sequence[str]) -> list[str]:
        result = await translator.translate(replace(asked, texts=tuple(texts)))
        observe(result)
        return [translation.text for translation in result.translations]

    return Translate(text=translate)
