"""Language codes: from the spelling in a checkpoint to the one that clients use."""

from collections import Counter
from collections.abc import Iterable

from langcodes import Language, standardize_tag
from langcodes.tag_parser import LanguageTagError


def language_code(written: str, *, macro_language: bool = True) -> str:
    """Return the shortest standard code (BCP 47, ISO 639-1 if possible): "en" for "eng", "pt-BR" for "pt_br".

    The region `XX` of mBART is none. A member of a macro-language gets the code of the macro-language ("zh" for "cmn")
    unless `macro_language` is False. A text that is not a language code is returned unchanged.
    """
    try:
        return standardize_tag(written.removesuffix("_XX"), macro=macro_language)
    except LanguageTagError:
        return written


def language_codes(written: Iterable[str]) -> dict[str, str]:
    """Return the shortest code of each language that no other one of the model has, by its spelling in a checkpoint.

    "de" for "deu_Latn" and "en" for "en_XX". Of several with one language, the one in its usual script has the short
    code: "zh" for "zho_Hans", "zh-Hant" for "zho_Hant".
    """
    spellings = list(written)
    tags = {spelling: language_code(spelling) for spelling in spellings}
    languages = {spelling: tag.partition("-")[0] for spelling, tag in tags.items()}
    num_with_language = Counter(languages.values())
    codes: dict[str, str] = {}
    taken: set[str] = set()
    for spelling in spellings:
        tag, language = tags[spelling], languages[spelling]
        narrow = language_code(spelling, macro_language=False)
        candidates = [] if num_with_language[language] > 1 else [language]
        candidates += [_without_usual_script(tag), _without_usual_script(narrow), narrow, spelling]
        codes[spelling] = next(code for code in candidates if code not in taken)
        taken.add(codes[spelling])
    return codes


def _without_usual_script(tag: str) -> str:
    try:
        language = Language.get(tag)
        usual = Language.make(language=language.language).maximize().script
        return (
            tag
            if language.script != usual
            else Language.make(language=language.language, territory=language.territory).to_tag()
        )
    except LanguageTagError:
        return tag
