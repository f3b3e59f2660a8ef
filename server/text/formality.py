"""Formal and informal address in translations: `Sie` or `du`, `vous` or `tu`, `usted` or `tú`.

Rules find words that only one form of address has. A text without them is neutral, and may be right for both.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import regex


class Formality(StrEnum):
    """A form of address."""

    FORMAL = "formal"
    INFORMAL = "informal"

    @property
    def opposite(self) -> "Formality":
        """The other form of address."""
        return Formality.INFORMAL if self is Formality.FORMAL else Formality.FORMAL


@dataclass(frozen=True, slots=True)
class _Words:
    """Words of one form of address in one language.

    `capital` words count with a capital inside a sentence only. `initial` words are verbs that count at the beginning
    of a sentence: imperatives. A `*` stands for any beginning, and `_` for a space.
    """

    anywhere: str = ""
    capital: str = ""
    initial: str = ""


_RULES: dict[str, dict[Formality, _Words]] = {
    "de": {
        Formality.FORMAL: _Words("", "Sie Ihnen Ihr Ihre Ihrem Ihren Ihrer Ihres", initial="*en_Sie"),
        Formality.INFORMAL: _Words(
            "du dich dir dein deine deinem deinen deiner deines euch euer eure eurem euren eurer bist hast kannst "
            "willst musst weißt",
            initial="komm geh sag gib nimm sei lass hör schau sieh warte mach bleib hilf lies iss vergiss ruf bring "
            "zeig denk setz steh halt schreib sprich trink schlaf fahr lauf frag versuch glaub kauf hol stell leg "
            "öffne schließ antworte entschuldige tu trag zieh wirf rede spiel lern arbeite",
        ),
    },
    "fr": {
        Formality.FORMAL: _Words("vous votre vos vôtre vôtres", initial="*ez"),
        Formality.INFORMAL: _Words(
            "tu te t' toi ton ta tes tien tienne",
            initial="viens va dis donne prends sois attends regarde écoute laisse fais mets entre ouvre ferme appelle "
            "lis mange bois parle aide arrête reste montre pense oublie essaie assieds pose garde apporte cherche",
        ),
    },
    "es": {
        Formality.FORMAL: _Words(
            "usted ustedes ud uds vd",
            initial="venga vaya diga haga ponga salga tenga sea espere mire escuche deme dígame pase entre abra cierre "
            "tome lea hable ayúdeme siéntese perdone disculpe permítame",
        ),
        Formality.INFORMAL: _Words(
            "tú te ti contigo tu tus tuyo tuya vosotros vosotras os vuestro vuestra vuestros vuestras eres estás "
            "tienes quieres puedes sabes haces vas vienes necesitas",
            initial="ven ve di haz pon sal ten espera mira escucha dame dime pasa abre cierra toma lee habla ayúdame "
            "siéntate perdona disculpa",
        ),
    },
    "it": {
        Formality.FORMAL: _Words(
            "",
            "Lei Suo Sua Suoi Sue",
            "venga vada dica faccia aspetti guardi senta prenda entri scusi chiuda apra legga parli",
        ),
        Formality.INFORMAL: _Words(
            "tu ti te tuo tua tuoi tue sei hai puoi vuoi devi sai",
            initial="vieni vai di' dimmi fa' fai dammi aspetta guarda senti ascolta prendi entra scusa chiudi apri "
            "leggi parla aiutami siediti",
        ),
    },
    "pt": {
        Formality.FORMAL: _Words("senhor senhora senhores senhoras"),
        Formality.INFORMAL: _Words("tu te ti contigo teu tua teus tuas você vocês"),
    },
    "nl": {
        Formality.FORMAL: _Words("u uw uzelf"),
        Formality.INFORMAL: _Words("je jij jou jouw jullie jezelf"),
    },
    "pl": {
        Formality.FORMAL: _Words("", "Pan Pani Pana Panu Panem Panią Państwo Państwa Państwu", "proszę"),
        Formality.INFORMAL: _Words("ty ciebie cię tobie tobą twój twoja twoje twojego twojej twoim twoją twoich"),
    },
    "ru": {
        Formality.FORMAL: _Words("вы вас вам вами ваш ваша ваше ваши вашего вашей вашему вашим вашу"),
        Formality.INFORMAL: _Words("ты тебя тебе тобой твой твоя твоё твои твоего твоей твоему твоим твою"),
    },
}
_ENGLISH_ADDRESS = regex.compile(r"\b(?:you|your|yours|yourself|yourselves)\b", regex.IGNORECASE)
_SENTENCE_START = r"(?:^|[.!?…]\s+)[\"'“”„«»‹›(¿¡\-–—\s]*"
_PLEASE = r"(?:(?i:bitte|por favor|per favore|s'il (?:vous|te) plaît|proszę),?\s+)?"
_INSIDE = r"(?<=[\p{L}\p{N},;]\s)"


def has_formality(language: str) -> bool:
    """Return whether there are rules for a target language such as `de` or `pt-BR`."""
    return _code(language) in _RULES


def formality_languages() -> tuple[str, ...]:
    """Return the languages with rules, in alphabetical order."""
    return tuple(sorted(_RULES))


class FormalityRules:
    """The rules of one target language. Immutable, so threads may share it."""

    def __init__(self, language: str) -> None:
        words = _RULES[_code(language)]
        self._addresses = {form: regex.compile(_pattern(words[form])) for form in Formality}
        self._initials = {form: regex.compile(_initial_pattern(words[form])) for form in Formality}
        # `Sie sind` is a plural too, unless the source has a second person.
        self._capitals = {
            form: regex.compile(rf"{_SENTENCE_START}(?:{'|'.join(words[form].capital.split()) or '(?!)'})\b")
            for form in Formality
        }
        self._words = words

    def forms(self, source: str, source_language: str, translation: str) -> set[Formality]:
        """Return the forms of address in a translation. An English source shows whether there is an address at all."""
        translation = translation.replace("’", "'")
        is_english = _code(source_language) == "en"
        is_address = not is_english or bool(_ENGLISH_ADDRESS.search(source))
        patterns = [self._initials, *([self._addresses] if is_address else [])]
        if is_english and is_address:
            patterns.append(self._capitals)
        return {form for form in Formality for pattern in patterns if pattern[form].search(translation)}

    def spellings(self, form: Formality) -> Iterator[str]:
        """Yield the pronouns and verbs of a form of address, with and without a capital."""
        words = self._words[form]
        yield from words.capital.split()
        for word in words.anywhere.split():
            yield word
            yield word[:1].upper() + word[1:]
        yield from (verb[:1].upper() + verb[1:] for verb in words.initial.split() if not verb.startswith("*"))


@cache
def formality_rules(language: str) -> FormalityRules:
    """Return the rules of a target language that `has_formality`."""
    return FormalityRules(language)


def _code(language: str) -> str:
    return language.partition("-")[0].lower()


def _pattern(words: _Words) -> str:
    anywhere = "|".join(regex.escape(word) for word in words.anywhere.split())
    capital = "|".join(words.capital.split())
    found = []
    if anywhere:
        found.append(rf"(?<![\w'\-])(?i:{anywhere})(?:(?<=')|(?!\w))")
    if capital:
        found.append(rf"{_INSIDE}(?:{capital})\b")
    return "|".join(found) or "(?!)"


def _initial_pattern(words: _Words) -> str:
    verbs = words.initial.split()
    endings = [rf"\w+{verb[1:].replace('_', ' ')}" for verb in verbs if verb.startswith("*")]
    whole = [regex.escape(verb) for verb in verbs if not verb.startswith("*")]
    alternatives = [*endings, *([f"(?i:{'|'.join(whole)})"] if whole else [])]
    return rf"{_SENTENCE_START}{_PLEASE}(?:{'|'.join(alternatives)})(?!\w|\s+Sie\b)" if alternatives else "(?!)"
