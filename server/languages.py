"""Which of a model's languages a language tag means."""

from collections.abc import Sequence


def match_language(tag: str, languages: Sequence[str]) -> str | None:
    """The language that `tag` means, or None.

    Compared without regard to case and `_` against `-`: the same tag first, then the same primary language, so that
    "en-US" finds "en" and "pt" finds "pt-BR".
    """
    wanted = _normalized(tag)
    by_tag = {_normalized(language): language for language in reversed(languages)}
    if wanted in by_tag:
        return by_tag[wanted]
    by_primary = {_primary(_normalized(language)): language for language in reversed(languages)}
    return by_primary.get(_primary(wanted))


def _normalized(tag: str) -> str:
    return tag.strip().replace("_", "-").casefold()


def _primary(tag: str) -> str:
    return tag.partition("-")[0]
