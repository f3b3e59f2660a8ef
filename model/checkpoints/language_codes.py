"""Language codes: from the spelling in a checkpoint to the one that clients use."""

from collections.abc import Iterable

from langcodes import Language, standardize_tag
from langcodes.tag_parser import LanguageTagError


def language_code(written: str, *, macro_language: bool = True) -> str:
    """Return the shortest standard code (BCP 47, ISO 639-1 if possible): "en" for "eng", "pt-BR" for "pt_br".

    A member of a macro-language gets the code of the macro-language ("zh" for "cmn") unless `macro_language` is False.
    A text that is not a language code is returned unchanged.
    """
    try:
        return standardize_tag(written, macro=macro_language)
    except LanguageTagError:
        return written


def language_codes(written: Iterable[str]) -> dict[str, str]:
    """Return the shortest code of each language that no other one of the model has, by its spelling in a checkpoint.

    "de" for "deu_Latn" and "en" for "en_XX", but "zh-Hant" beside "zh" for "zho_Hant" beside "zho_Hans".
    """
    codes: dict[str, str] = {}
    taken: set[str] = set()
    for spelling in written:
        tag = spelling.removesuffix("_XX")
        plain = language_code(tag, macro_language=False)
        candidates = (_without_usual_parts(tag), _without_usual_script(plain), plain, spelling)
        codes[spelling] = next(code for code in candidates if code not in taken)
        taken.add(codes[spelling])
    return codes


def _without_usual_parts(tag: str) -> str:
    """Return the code of a tag without its usual script, and without its region."""
    try:
        language = Language.get(language_code(tag)).simplify_script()
    except LanguageTagError:
        return tag
    return Language.make(language=language.language, script=language.script).to_tag()


def _without_usual_script(tag: str) -> str:
    try:
        return str(Language.get(tag).simplify_script().to_tag())
    except LanguageTagError:
        return tag
