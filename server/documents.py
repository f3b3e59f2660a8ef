"""Documents over an interpreter: what the formats ask of a translation, asked of the models."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from server.files.document import Translate
from server.interpreter import AUTO, Interpretation, Interpreter
from server.languages import match_language
from server.translation import TranslationRequest


def document_translation(
    interpreter: Interpreter,
    asked: TranslationRequest,
    source: str | None,
    target: str | None,
    observe: Callable[[Interpretation], None],
) -> Translate:
    """Translate as `asked`, whose texts do not count; `observe` is told every result.

    Where the source is `AUTO`, the texts that a format hands over at once are in one language: a cell or a heading says
    too little by itself. Raises as `Interpreter.check` does.
    """
    into = interpreter.check(asked, source, target)

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
        text=lambda texts: translate(texts, asked), html=lambda texts: translate(texts, replace(asked, format="html"))
    )
