"""Words for numbers, magnitudes, currencies and units, by language."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from unicodedata import normalize

import regex
from babel.numbers import get_currency_name, get_currency_symbol
from babel.units import format_unit

from server.text.items.numbers import locale_of

# Between the ends of a range.
TO = (
    r"\s(?:bis(?:\szu)?|to|through|till|until|à|a|al|ao|até|hasta|tot|do|til|and|und|et|e|y|en|i|or|oder|ou|o|of|lub)\s"
)
# 0 to 12. CLDR's spelled-out numbers are not part of Babel.
_CARDINALS: Mapping[str, Sequence[str]] = {
    language: words.split()
    for language, words in {
        "en": "zero one two three four five six seven eight nine ten eleven twelve",
        "de": "null ein(?:e[nmrs]?|s)? zwei(?:er|en)? drei(?:er|en)? vier fünf sechs sieben acht neun zehn elf zwölf",
        "fr": "zéro une? deux trois quatre cinq six sept huit neuf dix onze douze",
        "es": "cero un[oa]? dos tres cuatro cinco seis siete ocho nueve diez once doce",
        "it": "zero un[oa']? due tre quattro cinque sei sette otto nove dieci undici dodici",
        "pt": "zero uma? d(?:ois|uas) três quatro cinco seis sete oito nove dez onze doze",
        "nl": "nul één twee drie vier vijf zes zeven acht negen tien elf twaalf",
        "pl": "zero jed(?:en|n\\w+) dw(?:a|ie|óch|óm|oma) trz(?:y|ech|em) czter(?:y|ech|em) pię(?:ć|ciu) "
        "sze(?:ść|ściu) "
        "sied(?:em|miu) o(?:siem|śmiu) dziewię(?:ć|ciu) dziesię(?:ć|ciu) jedena(?:ście|stu) dwana(?:ście|stu)",
        "sv": "noll ett? två tre fyra fem sex sju åtta nio tio elva tolv",
        "da": "nul e[nt] to tre fire fem seks syv otte ni ti elleve tolv",
        "nb": "null e[nt]t? to tre fire fem seks sju åtte ni ti elleve tolv",
        "fi": "nolla yksi kaksi kolme neljä viisi kuusi seitsemän kahdeksan yhdeksän kymmenen yksitoista kaksitoista",
        "cs": "nula jed(?:en|n\\w+) dv(?:a|ě|ou) tř(?:i|í) čtyř(?:i|ech)? pět šest sedm osm devět deset "
        "jedenáct dvanáct",
        "ro": "zero un[au]? do(?:i|uă) trei patru cinci șase șapte opt nouă zece unsprezece doisprezece",
    }.items()
}
_ORDINALS: Mapping[str, Sequence[str]] = {
    language: words.split()
    for language, words in {
        "en": "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth",
        "de": regex.sub(
            r"(?<=t)\b",
            "e[nmrs]?",
            "nullt erst zweit dritt viert fünft sechst siebt acht neunt zehnt elft zwölft",
        ),
        "fr": "zéroième premi(?:er|ère)s? deuxièmes? troisièmes? quatrièmes? cinquièmes? sixièmes? "
        "septièmes? huitièmes? "
        "neuvièmes? dixièmes? onzièmes? douzièmes?",
        "es": "cero primer[oa]? segund[oa] tercer[oa]? cuart[oa] quint[oa] sext[oa] séptim[oa] octav[oa] "
        "noven[oa] décim[oa] undécim[oa] duodécim[oa]",
        "it": "zero prim[oa] second[oa] terz[oa] quart[oa] quint[oa] sest[oa] settim[oa] ottav[oa] non[oa] decim[oa] "
        "undicesim[oa] dodicesim[oa]",
    }.items()
}  # fmt: skip
_MAX_SPELLED = 12

_UNIT_NAMES = {
    "km/h": "speed-kilometer-per-hour", "m/s": "speed-meter-per-second", "mph": "speed-mile-per-hour",
    "km": "length-kilometer", "m": "length-meter", "cm": "length-centimeter", "mm": "length-millimeter",
    "m²": "area-square-meter", "m³": "volume-cubic-meter", "km²": "area-square-kilometer", "ft": "length-foot",
    "yd": "length-yard", "lb": "mass-pound", "lbs": "mass-pound", "oz": "mass-ounce", "kg": "mass-kilogram",
    "g": "mass-gram", "mg": "mass-milligram", "t": "mass-tonne", "l": "volume-liter", "ml": "volume-milliliter",
    "dl": "volume-deciliter", "cl": "volume-centiliter", "GB": "digital-gigabyte", "MB": "digital-megabyte",
    "kB": "digital-kilobyte", "TB": "digital-terabyte", "Hz": "frequency-hertz", "kHz": "frequency-kilohertz",
    "MHz": "frequency-megahertz", "GHz": "frequency-gigahertz", "W": "power-watt", "kW": "power-kilowatt",
    "MW": "power-megawatt", "kWh": "energy-kilowatt-hour", "V": "electric-volt", "A": "electric-ampere",
    "J": "energy-joule", "kJ": "energy-kilojoule", "kcal": "energy-kilocalorie", "hPa": "pressure-hectopascal",
    "°C": "temperature-celsius", "°F": "temperature-fahrenheit", "°": "angle-degree", "px": "graphics-pixel",
    "s": "duration-second", "ms": "duration-millisecond",
}  # fmt: skip
_PERCENT = regex.compile(
    r"\s?(?:[%‰]|Prozent|Promille|percent|per cent|per mille|pour ?cent|por cien|per cento|procent|"
    r"por cento|prosent)",
    regex.IGNORECASE,
)
_SIGN_CODES = {
    "$": "USD",
    "US$": "USD",
    "€": "EUR",
    "£": "GBP",
    "¥": "JPY",
    "₹": "INR",
    "₽": "RUB",
    "₩": "KRW",
    "₺": "TRY",
}
# Abbreviations of newspapers, which CLDR lacks.
_MORE_MAGNITUDES = {"en": {"bn": 9, "mn": 6, "tn": 12, "mio": 6}, "it": {"mld": 9}, "pl": {"mln": 6, "mld": 9}}
_WORD_CODES = {
    "dollar": "USD", "us-dol": "USD", "dólar": "USD", "euro": "EUR", "pfund": "GBP", "pound": "GBP", "yen": "JPY",
    "franken": "CHF", "franc": "CHF",
}  # fmt: skip
_LONGEST_STEM = 6  # of a word that is inflected


@lru_cache(maxsize=512)
def spelled(value: int, language: str, *, is_ordinal: bool) -> "regex.Pattern[str] | None":
    """Return a pattern of the words for a number of at most twelve; None if the language has none here."""
    table = (_ORDINALS if is_ordinal else _CARDINALS).get(language.partition("-")[0])
    if table is None or not 0 <= value <= _MAX_SPELLED:
        return None
    return regex.compile(rf"(?<!\w){table[value]}(?!\w)", regex.IGNORECASE)


@lru_cache(maxsize=64)
def _number_words(language: str) -> "regex.Pattern[str] | None":
    tables = (table.get(language.partition("-")[0]) for table in (_CARDINALS, _ORDINALS))
    words = [word for table in tables if table is not None for word in table]
    return regex.compile(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)", regex.IGNORECASE) if words else None


def has_number_word(text: str, language: str) -> bool:
    """Return whether a text has a number of at most twelve in words; True if the language has none here."""
    words = _number_words(language)
    return words is None or words.search(text) is not None


@lru_cache(maxsize=64)
def magnitudes(language: str) -> Mapping[str, int]:
    """Return the words and abbreviations for powers of ten from a thousand on, in lower case and without full stops."""
    formats = locale_of(language).compact_decimal_formats
    found: dict[str, int] = {}
    for width in ("short", "long"):
        for patterns in formats[width].values():
            for power, pattern in patterns.items():
                text = str(getattr(pattern, "pattern", pattern))
                word = regex.sub(r"[0#,.'\s\u00a0]+", " ", text).strip()
                if word and text.count("0") == 1:
                    # A lone letter is a unit in lower case: 5 m are metres.
                    found.setdefault(word.lower() if len(word) > 1 else word, len(str(power)) - 1)
    return _MORE_MAGNITUDES.get(language.partition("-")[0], {}) | found


def magnitude_at(text: str, language: str) -> int:
    """Return the power of ten whose word begins a text, or 0."""
    rest = text.lstrip(" \u00a0\u202f")
    known = magnitudes(language)
    for length in (2, 1):
        words = rest.split()[:length]
        word = " ".join(words).rstrip(".,;:!?)")
        if len(words) == length and (power := known.get(word.lower() if len(word) > 1 else word)):
            return power
    return 0


def without_magnitude(text: str, language: str) -> str:
    """Return a text that begins with the word of a power of ten without that word."""
    first, second = (regex.match(rf"\s*{words}", text) for words in (r"[^\W\d]+\.?", r"[^\W\d]+ [^\W\d]+\.?"))
    if second is not None and " ".join(second.group().lower().split()) in magnitudes(language):
        return text[second.end() :]
    return text[first.end() :] if first is not None else text


def currency_code(currency: str) -> str:
    """Return the ISO code of a sign or a name of a currency; the sign itself if it has none."""
    word = currency.lower()
    named = next((code for start, code in _WORD_CODES.items() if word.startswith(start)), None)
    return named or _SIGN_CODES.get(currency, currency)


def currency_word(currency: str, count: str, language: str) -> str:
    """Return the name of a currency for this number of it, without its country."""
    number = Decimal(count.replace(",", ".")) if regex.fullmatch(r"\d+(?:[.,]\d+)?", count) else Decimal(2)
    return get_currency_name(currency_code(currency), number, locale=locale_of(language)).split()[-1].split("-")[-1]


@lru_cache(maxsize=512)
def currency_pattern(currency: str, language: str) -> "regex.Pattern[str]":
    """Return a pattern of the sign, the code and the names of a currency."""
    code = currency_code(currency)
    if not code.isalpha() or len(code) != 3:
        return regex.compile(regex.escape(currency).replace(r"\$", r"\s?\$"))  # CA $
    locale = locale_of(language)
    names = {get_currency_name(code, count, locale=locale).split()[-1].split("-")[-1] for count in (1, 2, 5)}
    signs = {currency, code, get_currency_symbol(code, locale=locale)} | {
        s for s, c in _SIGN_CODES.items() if c == code
    }
    stems = {f"{regex.escape(name[:_LONGEST_STEM])}" for name in names if len(name) > 2}
    return regex.compile(
        "|".join([*map(regex.escape, sorted(signs, key=len, reverse=True)), *sorted(stems)]), regex.IGNORECASE
    )


@lru_cache(maxsize=512)
def unit_pattern(unit: str, language: str) -> "regex.Pattern[str]":
    """Return a pattern of a unit's symbol and its names, right behind a number."""
    compact = unit.replace(" ", "")
    symbols = {compact: 0, normalize("NFKC", compact): 0}
    if compact[-1:] in "lL":
        symbols |= {each[:-1] + litre: 0 for each in symbols for litre in "lL"}
    forms = [regex.escape(each).replace("°", r"°\s?") + r"(?!\w)" for each in symbols]
    if (name := _UNIT_NAMES.get(compact.replace("L", "l"))) is not None:
        locale = locale_of(language)
        for count in (1, 2, 5):
            written = format_unit(count, name, length="long", locale=locale).replace(str(count), "").strip()
            forms.append(regex.escape(written[: max(_LONGEST_STEM, len(written) - 2)]))
    return regex.compile(rf"[\s\u00a0\u202f-]?(?:{'|'.join(forms)})", regex.IGNORECASE if len(compact) > 2 else 0)


def is_percent(text: str) -> bool:
    """Return whether a text begins with a word or a sign for percent."""
    return _PERCENT.match(text) is not None
