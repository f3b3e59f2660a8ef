"""Additional pairs of a corpus, made of its own: with copied items, with noise, joined, and short ones again."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, time
from random import Random
from typing import Final

from babel import Locale, UnknownLocaleError
from babel.dates import format_date, format_time
from babel.numbers import format_decimal, format_percent

from model.training.parallel_text import Languages, Pair

_MAX_SHORT_WORDS = 2
_MAX_JOINED = 4
_REAL_CONTEXT = 0.6
_NUMBER: Final = re.compile(r"\d+")
_CAPITALISED: Final = re.compile(r"\b[A-Z][a-z]{2,}\b")
_SYLLABLES: Final = re.findall(
    r"\w+",
    "al an ar bel bor cal dan del den dor el en er fa fen gar hal hol ian ik in ja kar ko la lan len lin lo mar mel "
    "mi mon na nel ni nor o ol or pa per ra ran ri ro sa sen sha so ta tan ten ti to tor u va vel vin wa wen yo za",
)
_DOMAINS: Final = ("com", "org", "net", "de", "co.uk", "eu", "io", "info")
_CODE_LETTERS: Final = "ABCDEFGHKLMNPRSTUVWXYZ"
_PLACES: Final = ("{item}", "{text} {item}", "{text} ({item})", "{item}: {text}", "{item} – {text}")
_FINAL: Final = ".!?…。"
# Share of each kind among noisy pairs.
_NOISES: Final = {"capitals": 0.3, "lower": 0.2, "no full stop": 0.25, "typos": 0.25}


@dataclass(frozen=True, slots=True)
class AugmentationSettings:
    """Expected number of additional pairs for each pair that an epoch takes, by kind.

    `short` counts for pairs of at most two words on each side only.
    """

    copied: float = 0.0
    noisy: float = 0.0
    joined: float = 0.0
    short: float = 0.0


class Augmentation:
    """Collector of additional pairs. It draws from pairs in the order of reading; equal seeds give equal pairs."""

    def __init__(self, settings: AugmentationSettings, languages: Languages, seed: int) -> None:
        self._settings = settings
        self._random = Random(f"augmentation {seed}")
        self._items = ItemGenerator(languages, self._random)
        self._previous: deque[Pair] = deque(maxlen=_MAX_JOINED - 1)

    def observed(self, pairs: Iterable[Pair], share: float, extra: list[Pair]) -> Iterator[Pair]:
        """Yield the pairs of one file, of which an epoch takes this share, and append additional ones to `extra`."""
        self._previous.clear()  # pairs are joined with those of their own file
        for pair in pairs:
            extra += self._additional(pair, share)
            yield pair

    def _additional(self, pair: Pair, share: float) -> list[Pair]:
        settings = self._settings
        extra = [self._copied(pair) for _ in range(self._count(settings.copied * share))]
        extra += [noisy(pair, self._random) for _ in range(self._count(settings.noisy * share))]
        if self._previous:
            extra += [self._joined(pair) for _ in range(self._count(settings.joined * share))]
        if max(len(side.split()) for side in pair) <= _MAX_SHORT_WORDS:
            extra += [pair] * self._count(settings.short * share)
        self._previous.append(pair)
        return extra

    def _count(self, expected: float) -> int:
        return int(expected) + (self._random.random() < expected % 1)

    def _copied(self, pair: Pair) -> Pair:
        # Items in real sentences teach most, but most pairs have none.
        for change in self._random.sample((with_other_numbers, with_other_names), 2):
            other = change(pair, self._random)
            if other is not None and self._random.random() < _REAL_CONTEXT:
                return other
        return self._items.pair(pair)

    def _joined(self, pair: Pair) -> Pair:
        count = self._random.randrange(1, len(self._previous) + 1)
        pairs = [*list(self._previous)[-count:], pair]
        return " ".join(source for source, _ in pairs), " ".join(target for _, target in pairs)


def with_other_numbers(pair: Pair, random: Random) -> Pair | None:
    """Return the pair with other numbers, the same on both sides; None if the sides have different numbers, or none.

    A number keeps its magnitude, and one that can be a day, an hour or a year stays one. 0 and 1 stay: a plural would
    follow them.
    """
    source, target = pair
    numbers = _NUMBER.findall(source)
    if not numbers or sorted(numbers) != sorted(_NUMBER.findall(target)):
        return None
    others = {number: _other_number(number, random) for number in dict.fromkeys(numbers)}
    if all(number == other for number, other in others.items()):
        return None
    return tuple(_NUMBER.sub(lambda match: others[match[0]], side) for side in pair)  # type: ignore[return-value]


def with_other_names(pair: Pair, random: Random) -> Pair | None:
    """Return the pair with generated names for the capitalised words that both sides have; None without such words."""
    source, target = (set(_CAPITALISED.findall(side)) for side in pair)
    others = {word: generated_word(random).capitalize() for word in sorted(source & target)}
    if not others:
        return None
    return tuple(  # type: ignore[return-value]
        _CAPITALISED.sub(lambda match: others.get(match[0], match[0]), side) for side in pair
    )


def generated_word(random: Random) -> str:
    """Return a word of two or three syllables that no language has, mostly."""
    return "".join(random.choices(_SYLLABLES, k=random.choice((2, 2, 3))))


def _other_number(number: str, random: Random) -> str:
    value, width = int(number), len(number)
    if value < 2:
        return number
    if number.startswith("0"):
        return f"{random.randrange(2, 10):0{width}}" if value < 10 else number
    if width == 4 and 1500 <= value <= 2100:
        return str(random.randrange(1500, 2100))
    for largest in (12, 28, 59):
        if value <= largest:
            return str(random.randrange(2, largest + 1))
    first = random.choice("123456789")
    return first + "".join(random.choices("0123456789", k=width - 1))


class ItemGenerator:
    """Pairs with generated items, alone and within a real pair, in the notation of each language."""

    def __init__(self, languages: Languages, random: Random) -> None:
        self._locales = tuple(map(_locale, languages))
        self._random = random
        self._kinds: tuple[Callable[[], Pair], ...] = (
            self._name,
            self._integer,
            self._decimal,
            self._date,
            self._time,
            self._code,
            self._e_mail,
            self._address,
        )

    def pair(self, text: Pair) -> Pair:
        """Return a pair with one item, and with `text` in four of five cases."""
        place = self._random.choice(_PLACES)
        item = self._random.choice(self._kinds)()
        return place.format(text=text[0], item=item[0]), place.format(text=text[1], item=item[1])

    def _word(self) -> str:
        return generated_word(self._random)

    def _digits(self, width: int) -> str:
        return str(self._random.randrange(10 ** (width - 1), 10**width))

    def _name(self) -> Pair:
        words = [self._word().capitalize() for _ in range(self._random.choice((1, 2, 2)))]
        return (" ".join(words),) * 2

    def _integer(self) -> Pair:
        return (self._digits(self._random.choice((2, 3, 3, 4, 5, 6))),) * 2

    def _decimal(self) -> Pair:
        width, places = self._random.choice((1, 2, 3, 4, 5)), self._random.choice((0, 1, 2))
        value = int(self._digits(width + places)) / 10**places
        if self._random.random() < 0.2:
            return self._in_both(lambda locale: format_percent(value / 100, f"0.{'#' * places}%", locale=locale))
        return self._in_both(lambda locale: format_decimal(value, f"#,##0.{'0' * places}".rstrip("."), locale=locale))

    def _date(self) -> Pair:
        day = date.fromordinal(self._random.randrange(date(1900, 1, 1).toordinal(), date(2060, 1, 1).toordinal()))
        style = self._random.choice(("long", "medium", "full", "iso"))
        if style == "iso":
            return (day.isoformat(),) * 2
        return self._in_both(lambda locale: format_date(day, style, locale=locale))

    def _time(self) -> Pair:
        moment = time(self._random.randrange(24), self._random.randrange(60))
        return self._in_both(lambda locale: format_time(moment, "short", locale=locale))

    def _code(self) -> Pair:
        letters = "".join(self._random.choices(_CODE_LETTERS, k=self._random.choice((1, 2, 3))))
        return (letters + self._random.choice(("", "-", " ")) + self._digits(self._random.choice((2, 3, 4, 5))),) * 2

    def _e_mail(self) -> Pair:
        return (f"{self._word()}.{self._word()}@{self._domain()}",) * 2

    def _address(self) -> Pair:
        path = self._random.choice(("", f"/{self._word()}", f"/{self._word()}/{self._digits(3)}"))
        return (self._random.choice(("https://", "https://www.", "www.")) + self._domain() + path,) * 2

    def _domain(self) -> str:
        return f"{self._word()}.{self._random.choice(_DOMAINS)}"

    def _in_both(self, write: Callable[[Locale], str]) -> Pair:
        # CLDR writes times with narrow no-break spaces, which people do not type.
        source, target = (write(locale).replace("\u202f", " ").replace("\xa0", " ") for locale in self._locales)
        return source, target


def _locale(language: str) -> Locale:
    """Return the locale of a language; of a language that Babel does not have, the notation of English."""
    try:
        return Locale.parse(language, sep="-" if "-" in language else "_")
    except (UnknownLocaleError, ValueError):
        return Locale.parse("en")


def noisy(pair: Pair, random: Random) -> Pair:
    """Return the pair with one kind of noise. Capitals change both sides, all other kinds the source only."""
    source, target = pair
    kind = random.choices(list(_NOISES), list(_NOISES.values()))[0]
    if kind == "capitals":
        # Title case would follow other rules in each language.
        return source.upper(), target.upper()
    if kind == "lower":
        return source.lower(), target
    if kind == "no full stop":
        return source.rstrip(_FINAL + " ") or source, target
    return with_typo(source, random), target


def with_typo(text: str, random: Random) -> str:
    """Return a text in which one letter inside a longer word is missing, doubled, or exchanged with the next one."""
    words = text.split(" ")
    longer = [index for index, word in enumerate(words) if len(word) > 3 and word.isalpha()]
    if not longer:
        return text
    chosen = random.choice(longer)
    word = words[chosen]
    place = random.randrange(1, len(word) - 2)
    words[chosen] = random.choice(
        (
            word[:place] + word[place + 1 :],
            word[:place] + word[place] + word[place:],
            word[:place] + word[place + 1] + word[place] + word[place + 2 :],
        )
    )
    return " ".join(words)
