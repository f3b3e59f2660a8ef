"""Language tags: the language of a model that a tag matches, and English names of languages."""

from collections.abc import Sequence
from functools import cache

from babel import Locale


def match_language(tag: str, languages: Sequence[str]) -> str | None:
    """Return the language that `tag` matches, or None.

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
    """Return the English name of a language, or the tag itself without one."""
    names = Locale("en").languages
    parts = tag.strip().replace("-", "_").split("_")
    for num_parts in range(len(parts), 0, -1):
        spelled = [part.lower() if index == 0 else _spelled(part) for index, part in enumerate(parts[:num_parts])]
        if name := names.get("_".join(spelled)):
            return str(name)
    return tag


def _spelled(subtag: str) -> str:
    """Return a subtag in its usual case: scripts like Hant, regions like BR."""
    return subtag.title() if len(subtag) == 4 else subtag.upper()
