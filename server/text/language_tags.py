"""Which of a model's languages a language tag means, and what people call it."""

from collections.abc import Sequence
from functools import cache

from babel import Locale


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


@cache
def display_name(tag: str) -> str:
    """The English name of a language, or the tag itself where it has none known."""
    names = Locale("en").languages
    parts = tag.strip().replace("-", "_").split("_")
    for num_parts in range(len(parts), 0, -1):
        spelled = [part.lower() if place == 0 else _spelled(part) for place, part in enumerate(parts[:num_parts])]
        if name := names.get("_".join(spelled)):
            return str(name)
    return tag


def _spelled(subtag: str) -> str:
    """Scripts are written like Hant, regions like BR."""
    return subtag.title() if len(subtag) == 4 else subtag.upper()
