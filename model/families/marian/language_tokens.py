"""Tokens that select the target language in multilingual Marian models."""

from collections.abc import Iterable

from model.checkpoints.language_codes import language_code


def language_tokens(vocabulary: Iterable[str]) -> dict[str, str]:
    """Return the token `>>code<<` of each target language, by language code.

    The result is empty for a model with one target language. If two tokens belong to one macro-language, the first in
    order gets its code and the second keeps the narrower code.
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
