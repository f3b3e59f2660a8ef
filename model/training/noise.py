"""Noise of real texts in the source of a pair: capitals, missing punctuation, typing errors."""

from random import Random
from typing import Final

from model.training.translation_memory import Pair

_FINAL: Final = ".!?…。"
# Share of each kind among noisy pairs.
_KINDS: Final = {"capitals": 0.3, "lower": 0.2, "no full stop": 0.25, "typos": 0.25}


def noisy(pair: Pair, random: Random) -> Pair:
    """Return the pair with one kind of noise. Capitals change both sides, all other kinds the source only."""
    source, target = pair
    kind = random.choices(list(_KINDS), list(_KINDS.values()))[0]
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
