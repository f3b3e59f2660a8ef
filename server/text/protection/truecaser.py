"""Words as a model knows them best, for sentences in all caps, in a title's capitals, or without any capital.

The vocabulary decides: the form of a word that its tokens make cheapest is the form that the model has seen most. So
German nouns get their capitals back, and `USA` keeps them, without any list of words.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import regex

from server.text.language_tables import table_of
from server.text.protection.capitals import (
    Casing,
    is_all_caps,
    is_small_word,
    is_surely_usual,
    lower,
    small_words,
    upper,
    with_first,
)

_MAX_REMEMBERED = 50_000
_NOUNS_HAVE_CAPITALS = frozenset(("de", "lb"))
# By how much the form with a capital must be cheaper, in nats. Where nouns have none, vocabularies contain capitals
# mainly for the beginnings of sentences.
_MARGIN = 3.0
_CLEAR = 6.0  # hardly a name
_COMMON = 12.0  # the cost of a word that a small vocabulary has as one token
_SURE = 4.0  # hardly a capital that words have only at the beginning of sentences
_POLITE = frozenset(("sie", "ihr", "ihre", "you"))
_LONG_WORD = 4  # letters; a shorter word in capitals may be an acronym, and a shorter one without may be an article
_FEW_WORDS = 3  # a title of so few words may be a name
_VOWELS = frozenset("aeiouyäöüáàâéèêëíîïóôúûąęœæ")
_ACRONYMS = (
    "nasa nato uno eu usa uk un fbi cia bbc cnn aids hiv dna rna nba nfl fifa uefa unesco unicef opec asap faq usb gps "
    "led api url sms ceo cfo bmw vw ard zdf cdu csu spd fdp afd adac eur usd ok"
)
_SMALL_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzäöüß")
_WORD = regex.compile(r"[\p{L}\p{M}]+(?:['’][\p{L}\p{M}]+)*")
# Not the first of a sentence, or of what follows a colon.
_WORD_INSIDE = regex.compile(r"(?<=[^\s.:!?…(„“\"][^\p{L}\p{N}.:!?…(„“\"]{1,3})" + _WORD.pattern)
_BEGINNING = regex.compile(r"[^\p{L}\p{N}\ufffc]*+\p{Ll}")


@dataclass(frozen=True, slots=True)
class CasedWords:
    """The words of a sentence as the model should read them; None stands for a word without a change.

    `shouted` are the indices of words in all caps within a sentence that has others.
    """

    casing: Casing
    words: Sequence[str | None]
    shouted: frozenset[int] = frozenset()
    has_small_words: bool = False


class Truecaser:
    """Recognises unusual capitals in one language, and replaces them. Thread-safe.

    `cost` is how unlikely a word is for the vocabulary, in nats; it is 0 for all if the vocabulary has no words.
    """

    def __init__(self, cost: Callable[[str], float], language: str) -> None:
        self._cost = cost
        self.language = language.partition("-")[0]
        self._is_informed = cost("a") > 0
        self._margin = 0.0 if self.language in _NOUNS_HAVE_CAPITALS else _MARGIN
        # Vocabularies contain them with capitals because of the beginnings of sentences.
        self._always_small = frozenset(table_of(self.language).starters).difference(_POLITE)
        self._small_words = small_words(language)
        self._acronyms = frozenset(_ACRONYMS.split())
        self._costs: dict[str, float] = {}

    def casing(self, text: str) -> Casing:
        """Return the casing of a sentence."""
        if is_surely_usual(text) or (text[:1].isupper() and self._has_small_letters(text)):
            return Casing.USUAL
        if is_all_caps(text):
            return Casing.UPPER
        if not self._is_informed:
            return Casing.USUAL
        if _is_lower(text):
            return Casing.LOWER
        return Casing.TITLE if self._is_title(text) else Casing.USUAL

    def has_unusual_casing(self, text: str) -> bool:
        """Return whether a sentence has a casing of its own."""
        return self.casing(text) is not Casing.USUAL

    def _has_small_letters(self, text: str) -> bool:
        """Return whether a word that titles write with a capital begins with a small letter."""
        return any(word[0] in _SMALL_LETTERS and word not in self._small_words for word in text.split()[1:])

    def is_special(self, text: str) -> bool:
        """Return whether the model should read a sentence with other capitals."""
        return self.casing(text) is not Casing.USUAL or bool(self.shouted(_WORD.findall(text)))

    def read(self, text: str, words: Sequence[str | None]) -> CasedWords:
        """Return the words of a sentence `text` as the model should read them; None is a word that is no text."""
        casing = self.casing(text)
        if casing is Casing.USUAL:
            shouted = self.shouted(words)
            forms = [
                self.natural(word) if index in shouted and word is not None else None
                for index, word in enumerate(words)
            ]
            if forms and 0 in shouted and forms[0]:
                forms[0] = with_first(forms[0], upper, self.language)
            return CasedWords(casing, forms, shouted)
        forms, is_first = [], True
        keeps_first = casing is Casing.LOWER and not _is_sentence(text)
        for word in words:
            if word is None or not _WORD.fullmatch(word):
                forms.append(None)
                is_first = is_first and word is not None and not word[:1].isalnum()
                continue
            form = self.natural(word)
            forms.append(with_first(form, upper, self.language) if is_first and not keeps_first else form)
            is_first = False
        small = [word for word in words[1:] if word is not None and is_small_word(word, self.language)]
        return CasedWords(casing, forms, has_small_words=any(word[:1].islower() for word in small))

    def natural(self, word: str) -> str:
        """Return a word as it is written inside a sentence."""
        lowered = self._lower(word)
        if self.language == "en" and lowered.replace("’", "'").partition("'")[0] == "i":
            return "I" + lowered[1:]
        if not self._is_informed:
            return lowered
        if lowered in self._always_small:
            return lowered
        capital, caps = with_first(lowered, upper, self.language), upper(lowered, self.language)
        costs = [self._cost_of(lowered), self._cost_of(capital) + self._margin, self._cost_of(caps) + self._margin]
        is_acronym = lowered in self._acronyms or (
            len(lowered) > 1 and _VOWELS.isdisjoint(lowered) and costs[0] > costs[2]
        )
        if len(lowered) > 1 and (is_acronym or costs[2] < min(costs[:2])):
            return caps
        return capital if costs[1] < costs[0] else lowered

    def _lower(self, word: str) -> str:
        """Return a word in lower case, in German with the `ß` that all caps have not."""
        lowered = lower(word, self.language)
        if self.language == "de" and "SS" in word:
            sharp = lowered.replace("ss", "ß")
            plain_cost = min(self._cost_of(lowered), self._cost_of(lowered.capitalize()))
            if min(self._cost_of(sharp), self._cost_of(sharp.capitalize())) < plain_cost - _MARGIN:
                return sharp
        return lowered

    def first_as_inside(self, text: str, *, only_surely: bool = False) -> str:
        """Return a text whose first word is written as inside a sentence; `only_surely` keeps what may be a noun."""
        match = _WORD.search(text)
        if match is None or not match.group()[:1].isupper() or any(map(str.isalnum, text[: match.start()])):
            return text
        word = match.group()
        lowered = lower(word, self.language)
        is_pronoun = self.language == "en" and self.natural(word)[:2] in ("I", "I'", "I’")
        is_name = lowered not in self._always_small and self._gain(word) < (_CLEAR if only_surely else -_SURE)
        if word[1:] != lowered[1:] or is_pronoun or is_name:
            return text
        return text[: match.start()] + with_first(word, lower, self.language) + text[match.end() :]

    def shouted(self, words: Sequence[str | None]) -> frozenset[int]:
        """Return the words in all caps that the vocabulary has in lower case only.

        A word alone must be long, because it may be an acronym; in a row with others, acronyms between them count too.
        """
        if not self._is_informed or not any(word is not None and word.isupper() for word in words):
            return frozenset()
        found: set[int] = set()
        run: list[int] = []
        for index, word in enumerate((*words, None)):
            if word is not None and (not word[:1].isalpha() or word.isupper()):
                if word.isupper():
                    run.append(index)
                elif word in (",", "-", "'", "’", ":", ";"):
                    continue
                else:
                    found.update(self._shouted_run(words, run))
                    run = []
                continue
            found.update(self._shouted_run(words, run))
            run = []
        return frozenset(found)

    def _shouted_run(self, words: Sequence[str | None], run: Sequence[int]) -> Sequence[int]:
        written = [word for index in run if (word := words[index]) is not None]
        known = [word for word in written if len(word) > 1 and self.natural(word) != word and self._is_cheaper(word)]
        if len(written) == 1:
            return run if known and len(written[0]) >= _LONG_WORD else ()
        return run if len(known) * 2 >= len(written) and len(known) >= 2 else ()

    def _is_cheaper(self, word: str) -> bool:
        natural = self.natural(word)
        return self._cost_of(natural) <= _COMMON and self._cost_of(word) - self._cost_of(natural) >= _CLEAR

    def _is_title(self, text: str) -> bool:
        """Return whether all words but small ones have capitals, and some have them only for that."""
        words = _WORD.findall(text)
        if len(words) < 2 or any(word.islower() and not is_small_word(word, self.language) for word in words):
            return False
        inside = {match.group() for match in _WORD_INSIDE.finditer(text)}
        gains = [self._gain(word) for word in words[1:] if word in inside and word[:1].isupper() and word[1:].islower()]
        evidence = [gain for gain in gains if gain > max(self._margin, 1.0)]
        if len(evidence) > 1 or self.language in _NOUNS_HAVE_CAPITALS:
            return len(evidence) > 1  # one may be a noun: Guten Morgen
        if not evidence or len(words) > _FEW_WORDS:
            return bool(evidence) and evidence[0] >= _CLEAR
        # A few words may be a name: Bill Gates, The Times, Frau Klein.
        is_name = is_small_word(words[0], self.language) or self._gain(words[0]) < -_MARGIN
        return evidence[0] >= _CLEAR and not is_name

    def _gain(self, word: str) -> float:
        """Return by how much a word with a capital is cheaper in lower case."""
        lowered = lower(word, self.language)
        gain = self._cost_of(word) - self._cost_of(lowered)
        return max(gain, _CLEAR) if lowered in self._always_small else gain

    def _cost_of(self, word: str) -> float:
        cost = self._costs.get(word)
        if cost is None:
            if len(self._costs) > _MAX_REMEMBERED:
                self._costs.clear()
            cost = self._costs[word] = self._cost(word)
        return cost


def _is_lower(text: str) -> bool:
    """Return whether a sentence begins with a small letter and has no capital."""
    return _BEGINNING.match(text) is not None and text.lower() == text and sum(map(str.isalpha, text)) > 1


def _is_sentence(text: str) -> bool:
    """Return whether a text is a sentence rather than a word or two."""
    return len(text.split()) > 2 or text.rstrip("\"'”“»)")[-1:] in (".", "!", "?", "…")
