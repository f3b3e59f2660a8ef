"""Languages of a CTranslate2 model: tokens of its vocabulary select them, as in M2M100, NLLB-200 and MADLAD-400."""

import re
from collections.abc import Mapping, Sequence

from model.checkpoints.checkpoint import Languages
from model.checkpoints.language_codes import language_code, language_codes

_M2M100 = re.compile(r"__([a-z]{2,3})__")
_CODES = re.compile(r"[a-z]{2,3}_(?:[A-Z]{2}|[A-Z][a-z]{3})")
_MADLAD = re.compile(r"<2([A-Za-z_\-]+)>")
_MARIAN = re.compile(r">>(.+)<<")
_MIN_TOKENS = 2  # one such token can be a word


def vocabulary_languages(tokens: Sequence[str], *, has_zero_start: bool) -> Languages | None:
    """Return the languages that tokens of the vocabulary select; None for a model without such tokens.

    With `has_zero_start`, as in Marian, a token before the source selects the target.
    """
    ids = {token: index for index, token in enumerate(tokens)}
    if has_zero_start:
        prefixes = {language_code(found[1]): token for token in tokens if (found := _MARIAN.fullmatch(token))}
        return Languages((), tuple(prefixes), source_prefix=prefixes) if prefixes else None
    madlad = [found[1] for token in tokens if (found := _MADLAD.fullmatch(token))]
    if len(madlad) >= _MIN_TOKENS:
        codes = language_codes(madlad)
        every = tuple(codes.values())
        prompts = {code: f"<2{written}> " for written, code in codes.items()}
        return Languages(every, every, prompts=prompts, aliases=_aliases(codes))
    m2m100 = {found[1]: ids[token] for token in tokens if (found := _M2M100.fullmatch(token))}
    if len(m2m100) >= _MIN_TOKENS:
        return _selected(m2m100, {language: language for language in m2m100})
    written = [token for token in tokens if _CODES.fullmatch(token)]
    if len(written) < _MIN_TOKENS:
        return None
    codes = language_codes(written)
    return _selected({codes[token]: ids[token] for token in written}, codes)


def _selected(ids: Mapping[str, int], codes: Mapping[str, str]) -> Languages:
    every = tuple(ids)
    return Languages(every, every, first_tokens=ids, source_tokens=ids, aliases=_aliases(codes))


def _aliases(codes: Mapping[str, str]) -> dict[str, str]:
    return {written: code for written, code in codes.items() if written != code}
