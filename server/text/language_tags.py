"""Language tags: the language of a model that a tag matches, and names of languages."""

import re
from collections.abc import Sequence
from functools import cache, lru_cache

from babel import Locale, UnknownLocaleError
from babel.core import get_global

_MAX_TAG_CHARACTERS = 64  # the longest real language tags have half as many
_DETECTION = frozenset({"", "auto", "auto-detect", "und"})

# Codes of clients that are neither tags nor in the aliases of Unicode.
_CLIENT_TAGS = {
    "zt": "zh-hant",  # LibreTranslate
    "cht": "zh-hant",  # Baidu
    "pb": "pt-br",  # Subtitle Edit
    "\u4e2d\u6587(\u7b80\u4f53)": "zh-hans",  # "Chinese (simplified)", of Selection Translator
    "\u4e2d\u6587(\u7e41\u4f53)": "zh-hant",
}
_CODE = re.compile(r"[a-z]{2}(-|$)")  # which the name of no language is, so that none are read for it
_TRADITIONAL = frozenset({"hant", "tw", "hk", "mo"})
_MEMBERS_OF_SCRIPTS = {
    "Hans": ("Hani", "Bopo"),
    "Hant": ("Hani", "Bopo"),
    "Jpan": ("Hani", "Hira", "Kana"),
    "Hrkt": ("Hira", "Kana"),
    "Kore": ("Hani", "Hang"),
    "Hanb": ("Hani", "Bopo"),
    "Latf": ("Latn",),
    "Latg": ("Latn",),
}
_NAME_LOCALES = ("zh", "en")  # prompts and extensions name languages in these two
# Codes of members that stand for the whole in models, but not in the aliases of Unicode.
_WHOLE = {"dik": "din", "fuv": "ff", "knc": "kr", "pbt": "ps", "quy": "qu"}
_MACROLANGUAGES = {"nb": "no", "nn": "no"}  # without a model for one, another serves, the first ones before others


def match_language(tag: str, languages: Sequence[str]) -> str | None:
    """Return the language that `tag` matches, or None.

    Compared without regard to case and `_` against `-`: the same tag first, then another spelling of it ("iw", "heb"
    and "Hebrew" find "he", "zh-TW" finds "zh-Hant"). Then, in this order, the language without a region ("en-US" finds
    "en"), its macrolanguage or another member ("no" finds "nb"), and the nearest other region or script ("es-MX" finds
    "es-419" before "es-ES"). Of languages that are equally near, that of the usual script and region ("fr-BE" finds
    "fr-FR" before "fr-CA"), or else the first one.
    """
    for spelled in (_folded, _normalized):
        wanted = spelled(tag)
        for language in languages:
            if spelled(language) == wanted:
                return language
    primary = primary_language(tag)
    related = [language for language in languages if primary_language(language) == primary]
    return min(related, key=lambda language: _distance(tag, language), default=None)


def _distance(tag: str, language: str) -> tuple[bool, int, int, int, bool]:
    """Return how far a language is from a tag of the same macrolanguage; smaller is nearer."""
    wanted, found = _normalized(tag), _normalized(language)
    own, other = wanted.partition("-")[0], found.partition("-")[0]
    members = [own, primary_language(tag), *_MACROLANGUAGES]
    up, down = _ancestors(wanted), _ancestors(found)
    common = next((ancestor for ancestor in up if ancestor in down), up[-1])
    steps = down.index(common) if common in down else len(down)
    usual = str(get_global("likely_subtags").get(other, "")).casefold().split("_")
    is_usual = all(subtag in usual for subtag in found.split("-")[1:])
    return found != other, members.index(other), up.index(common), steps, not is_usual


def _ancestors(tag: str) -> list[str]:
    """Return a tag and those whose texts serve where its own are missing: "es_MX", "es_419", "es"."""
    language, *subtags = tag.split("-")
    ancestors = ["_".join([language, *map(_spelled, subtags)])]
    while above := get_global("parent_exceptions").get(ancestors[-1]) or ancestors[-1].rpartition("_")[0]:
        ancestors.append(above)
    return ancestors


@lru_cache(maxsize=4096)
def scripts_of(tag: str) -> frozenset[str]:
    """Return the codes of the scripts that a language is written in, here or there; empty for an unknown language."""
    language = _without_aliases(_folded(tag)).partition("-")[0]
    likely = get_global("likely_subtags")
    found = (str(likely[key]).split("_")[1] for key in _keys_of_languages().get(language, ()))
    return frozenset(script for code in found for script in _MEMBERS_OF_SCRIPTS.get(code, (code,)))


@cache
def _keys_of_languages() -> dict[str, list[str]]:
    keys: dict[str, list[str]] = {}
    for key in get_global("likely_subtags"):
        keys.setdefault(str(key).partition("_")[0], []).append(str(key))
    return keys


def means_detection(tag: str | None) -> bool:
    """Return whether a source language, as clients write it, requests its detection: missing, empty or `auto`."""
    return tag is None or _folded(tag) in _DETECTION


def _folded(tag: str) -> str:
    return tag[: _MAX_TAG_CHARACTERS + 1].strip().replace("_", "-").casefold()


def _normalized(tag: str) -> str:
    return _without_aliases(_folded(tag))


def primary_language(tag: str) -> str:
    """Return the code of the language of a tag: "de" for "de-AT", "deu_Latn" and "German"."""
    primary = _normalized(tag).partition("-")[0]
    return _MACROLANGUAGES.get(primary, primary)


@lru_cache(maxsize=4096)
def _without_aliases(tag: str) -> str:
    tag = _CLIENT_TAGS.get(tag) or (tag if _CODE.match(tag) else _tags_of_names().get(tag, tag))
    primary, _, rest = tag.partition("-")
    alias = str(get_global("language_aliases").get(primary, primary)).replace("_", "-").casefold()
    alias = _WHOLE.get(alias, alias)
    tag = f"{alias}-{rest}" if rest else alias
    primary, *subtags = tag.split("-")
    if primary == "zh":
        is_traditional = "hans" not in subtags and not _TRADITIONAL.isdisjoint(subtags)
        return "zh-hant" if is_traditional else "zh-hans"
    return tag


@cache
def _tags_of_names() -> dict[str, str]:
    codes = {_folded(str(code)) for code in Locale("en").languages}
    named = ((_folded(name), code) for locale in _NAME_LOCALES for code, name in Locale(locale).languages.items())
    # "ga" is Irish, not Ga.
    return {name: _folded(str(code)) for name, code in named if name not in codes}


@lru_cache(maxsize=4096)
def display_name(tag: str, locale: str = "en") -> str:
    """Return the name of a language in another one, else in English, else the tag itself."""
    name = _name(tag, _locale(locale))
    return name or _name(tag, _locale("en")) or tag


@lru_cache(maxsize=4096)
def own_name(tag: str) -> str | None:
    """Return the name of a language in that language, or None."""
    return _name(tag, _locale(tag))


def _locale(tag: str) -> Locale | None:
    try:
        return Locale.parse(primary_language(tag).replace("-", "_"))
    except (UnknownLocaleError, ValueError):
        return None


def _name(tag: str, locale: Locale | None) -> str | None:
    if locale is None:
        return None
    names = locale.languages
    parts = tag.strip().replace("-", "_").split("_")
    for num_parts in range(len(parts), 0, -1):
        spelled = [part.lower() if index == 0 else _spelled(part) for index, part in enumerate(parts[:num_parts])]
        if name := names.get("_".join(spelled)):
            return str(name)
    return None


def _spelled(subtag: str) -> str:
    """Return a subtag in its usual case: scripts like Hant, regions like BR."""
    return subtag.title() if len(subtag) == 4 else subtag.upper()
