"""Language codes, from what a checkpoint says to what a client writes."""

from collections.abc import Iterable

from langcodes import standardize_tag
from langcodes.tag_parser import LanguageTagError


def language_code(written: str, *, macro_language: bool = True) -> str:
    """The shortest standard code (BCP 47, so ISO 639-1 where there is one): "eng" is "en", "pt_br" is "pt-BR".

    A member of a macro-language takes that one's code ("cmn" is "zh") unless told otherwise. What is not a language
    code stays as written.
    """
    try:
        return standardize_tag(written, macro=macro_language)
    except LanguageTagError:
        return written


def language_tokens(vocabulary: Iterable[str]) -> dict[str, str]:
    """Language code -> the vocabulary's token `>>code<<` that asks for that target language.

    Empty for a model of one target language. Where two tokens have one macro-language, the first in order takes its
    code and the other keeps the narrower one; no token is lost.
    """
    tokens: dict[str, str] = {}
    for token in vocabulary:
        if not (token.startswith(">>") and token.endswith("<<") and len(token) > 4):
            continue
        written = token[2:-2]
        for code in (language_code(written), language_code(written, macro_language=False), written):
            if code not in tokens:
                tokens[code] = token
                break
    return tokens
