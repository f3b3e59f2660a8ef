"""Negations and prohibitions, which a translation must not lose: without them it says the opposite."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import regex

Alternatives = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Words:
    """Patterns of the words of one language, and words of which a search may be required to write one."""

    negations: str
    prohibitions: str
    a_negation: Alternatives
    a_prohibition: Alternatives


_WORDS: Mapping[str, _Words] = {
    "en": _Words(
        r"not|cannot|\w+n['’]t|no|never|none|no(?:body|thing)|nowhere|neither|nor|without|hardly",
        r"forbidden|prohibited|banned|off limits|unauthori[sz]ed",
        ("not", "don't", "no", "never", "nothing", "without"),
        ("forbidden", "prohibited", "not allowed", "banned"),
    ),
    "de": _Words(
        r"nicht|kein\w*|nie|niemals|niemand\w*|nichts|nirgends|nirgendwo|weder|ohne|kaum",
        r"verboten\w*|untersagt\w*|unzulässig\w*|verbot",
        ("nicht", "kein", "keine", "keinen", "nie", "nichts", "ohne"),
        ("verboten", "untersagt", "nicht erlaubt", "nicht gestattet"),
    ),
    "fr": _Words(
        r"ne|n['’]\w+|pas|non|jamais|rien|aucune?|ni|sans|nulle part",
        r"interdite?s?|défense|prohibée?s?|défendue?s?",
        ("pas", "jamais", "rien", "aucun", "aucune", "sans"),
        ("interdit", "interdite", "défense"),
    ),
    "es": _Words(
        r"no|nunca|jamás|nada|nadie|ningun[oa]s?|ningún|ni|sin|tampoco",
        r"prohibid[oa]s?|prohíbe|vedad[oa]s?",
        ("no", "nunca", "nada", "sin"),
        ("prohibido", "prohibida", "no se permite"),
    ),
    "it": _Words(
        r"non|no|mai|niente|nulla|nessun\w*|né|senza",
        r"vietat[oaie]|divieto|proibit[oaie]",
        ("non", "mai", "niente", "senza"),
        ("vietato", "vietata", "divieto"),
    ),
    "pt": _Words(
        r"não|nunca|jamais|nada|ninguém|nenhum\w*|nem|sem",
        r"proibid[oa]s?|vedad[oa]s?",
        ("não", "nunca", "nada", "sem"),
        ("proibido", "proibida", "não é permitido"),
    ),
    "nl": _Words(
        r"niet|geen|nooit|niemand|niets|nergens|noch|zonder",
        r"verboden|verbod",
        ("niet", "geen", "nooit", "niets"),
        ("verboden", "niet toegestaan"),
    ),
    "pl": _Words(
        r"nie|nigdy|nikt|nikogo|nic|niczego|nigdzie|żad\w+|ani|bez",
        r"zabronion\w+|wzbronion\w+|zakaz\w*",
        ("nie", "nigdy", "nic", "bez"),
        ("zabronione", "wzbronione", "zakaz"),
    ),
}


@dataclass(frozen=True, slots=True)
class Negation:
    """The negation of a sentence: the pattern of its counterparts, and words of which a translation must have one."""

    counterparts: "regex.Pattern[str]"
    doubled: "regex.Pattern[str]"
    words: Alternatives

    def is_in(self, translation: str) -> bool:
        """Return whether a translation has a negation."""
        return self.counterparts.search(translation) is not None

    def is_doubled(self, translation: str) -> bool:
        """Return whether a prohibition is negated: `not forbidden`."""
        return self.doubled.search(translation) is not None


def negation_of(sentence: str, source: str, target: str) -> Negation | None:
    """Return the negation of a sentence; None if it has none, or if there are no words for one of the languages."""
    from_words, to_words = (_WORDS.get(language.partition("-")[0]) for language in (source, target))
    if from_words is None or to_words is None:
        return None
    counterparts = _pattern(f"{to_words.negations}|{to_words.prohibitions}")
    doubled = _pattern(rf"(?:{to_words.negations})\s(?:\w+\s)?(?:{to_words.prohibitions})")
    if _pattern(from_words.prohibitions).search(sentence):
        return Negation(counterparts, doubled, to_words.a_prohibition)
    return (
        Negation(counterparts, doubled, to_words.a_negation)
        if _pattern(from_words.negations).search(sentence)
        else None
    )


@lru_cache(maxsize=32)
def _pattern(words: str) -> "regex.Pattern[str]":
    return regex.compile(rf"(?<!\w)(?:{words})(?!\w)", regex.IGNORECASE)
