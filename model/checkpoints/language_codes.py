"""Language codes: from the spelling in a checkpoint to the one that clients use."""

from langcodes import standardize_tag
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
