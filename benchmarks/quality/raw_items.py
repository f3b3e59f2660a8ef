"""Numbers, dates, times and names that a model translates right by itself.

    python -m benchmarks.quality.raw_items BUNDLE ... [--number 500] [--seed 1] [--beam-size 4] [--show 0]

Sentences are drawn from a grammar that no training data was made with. Every sentence is decoded as it is. A number,
date or time is right if the answer has it by value: with any separators, on either clock, with the name of its month,
or up to twelve in words. A name is right as it is written.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, NamedTuple

import regex
import typer
from babel.dates import get_month_names

from benchmarks.in_process import InProcessEngine
from benchmarks.workloads import target_language
from bundle.loading import load_bundle
from server.interface.request import SentenceParams
from server.text.digits import number_words
from server.text.tokenizers.registry import open_tokenizer

TEMPLATES: Mapping[str, Sequence[str]] = {
    "en": (
        "There are {integer} children in the park.",
        "The meeting with {name} starts at {time}.",
        "{name} was born on {date}.",
        "We drove {integer} miles in {integer} days.",
        "The train leaves at {time} and arrives at {time}.",
        "Please pay the bill of {integer} dollars by {date}.",
        "Room {integer} is free until {time}.",
        "{name} and {name} have known each other since {year}.",
        "The shop sold {integer} books last week.",
        "I will call you on {date} at {time}.",
        "The company was founded in {year} by {name}.",
        "Her number is {integer}, and mine is {integer}.",
        "About {percentage} of the people said yes.",
        "It costs {decimal} euros at the market.",
        "On {date}, {name} moved to a new house.",
        "The tower is {decimal} metres high.",
        "He bought {integer} apples and {integer} eggs.",
        "Ask {name} for the key to room {integer}.",
        "The film is {integer} minutes long and begins at {time}.",
        "In {year} the town had {integer} inhabitants.",
    ),
    "de": (
        "Im Park sind {integer} Kinder.",
        "Das Treffen mit {name} beginnt um {time}.",
        "{name} wurde am {date} geboren.",
        "Wir sind in {integer} Tagen {integer} Kilometer gefahren.",
        "Der Zug fährt um {time} ab und kommt um {time} an.",
        "Bitte bezahlen Sie die Rechnung über {integer} Dollar bis zum {date}.",
        "Zimmer {integer} ist bis {time} frei.",
        "{name} und {name} kennen sich seit {year}.",
        "Der Laden hat letzte Woche {integer} Bücher verkauft.",
        "Ich rufe Sie am {date} um {time} an.",
        "Die Firma wurde {year} von {name} gegründet.",
        "Ihre Nummer ist {integer}, und meine ist {integer}.",
        "Etwa {percentage} der Leute sagten ja.",
        "Auf dem Markt kostet es {decimal} Euro.",
        "Am {date} zog {name} in ein neues Haus.",
        "Der Turm ist {decimal} Meter hoch.",
        "Er kaufte {integer} Äpfel und {integer} Eier.",
        "Fragen Sie {name} nach dem Schlüssel für Zimmer {integer}.",
        "Der Film dauert {integer} Minuten und beginnt um {time}.",
        "Im Jahr {year} hatte die Stadt {integer} Einwohner.",
    ),
}
_MONTHS: Mapping[str, Sequence[str]] = {
    "en": tuple(get_month_names(locale="en").values()),
    "de": tuple(get_month_names(locale="de").values()),
}
_GIVEN = ("Anna", "Ben", "Carla", "David", "Elif", "Felix", "Greta", "Hassan", "Ingrid", "Jonas", "Karim", "Lena")
_FAMILY = ("Ahmadi", "Bergmann", "Castillo", "Dubois", "Eriksen", "Fischer", "Greene", "Hoffmann", "Kowalski", "Novak")
CHECKED_TOGETHER = ("integer", "year", "date", "time")
_KINDS = ("integer", "year", "decimal", "percentage", "date", "time", "name")
_MAX_SPELLED = 12
_NUMBER = regex.compile(r"\d+(?:[.,:/]\d+)*")
_TIME = regex.compile(r"(?<!\d)(1?\d)(?:[:.](\d\d))?\s?([apAP])\.?[mM](?!\w)")
_GROUPED = regex.compile(r"\d{1,3}(?:[.,]\d{3})+")


class ItemSentence(NamedTuple):
    """A sentence and its items: kind and text."""

    text: str
    items: tuple[tuple[str, str], ...]


def item_sentences(seed: int, number: int, language: str) -> list[ItemSentence]:
    """Return random sentences, each template equally often. Raises ValueError for a language without a grammar."""
    if language not in TEMPLATES:
        raise ValueError(f"sentences must be in {' or '.join(TEMPLATES)}. Given: {language}")
    drawn = random.Random(f"{language} {seed}")  # noqa: S311 - the same seed gives the same sentences
    templates = TEMPLATES[language]
    return [_filled(templates[index % len(templates)], language, drawn) for index in range(number)]


def right_items(sentence: ItemSentence, answer: str, languages: tuple[str, str]) -> list[bool]:
    """Return for each item whether an answer has it. An answer's number is the counterpart of one item only."""
    words = regex.findall(r"\w+", answer.casefold())
    left = Counter(chain(map(_parts, _NUMBER.findall(_on_24_hours(answer))), zip(words, strict=True)))
    return [_take(kind, text, answer, left, languages) for kind, text in sentence.items]


def _take(kind: str, text: str, answer: str, left: Counter[tuple[object, ...]], languages: tuple[str, str]) -> bool:
    """Take the counterpart of an item from the numbers and words of an answer that are left, if it is there."""
    if kind == "name":
        return text in answer
    parts = _parts(_NUMBER.findall(_on_24_hours(text))[0])
    forms: list[list[tuple[object, ...]]] = [[parts]]
    if kind == "time" and parts[1] == 0:
        forms.append([parts[:1]])
    elif kind == "date":
        day, year = sorted(map(int, regex.findall(r"\d+", text)))
        month = next(number for number, name in enumerate(_MONTHS[languages[0]], 1) if name in text)
        forms = [[(_MONTHS[languages[1]][month - 1].casefold(),), (day,), (year,)], [(day, month, year)]]
    elif kind == "integer" and parts[0] <= _MAX_SPELLED:
        beginnings = tuple(form[0] for form in number_words(languages[1]).get(parts[0], ()) if len(form) == 1)
        forms += [[key] for key in left if isinstance(key[0], str) and key[0].startswith(beginnings)]
    for form in forms:
        if all(left[key] > 0 for key in form):
            left.subtract(form)
            return True
    return False


def _on_24_hours(text: str) -> str:
    """Return a text whose times are on a clock of 24 hours."""
    return _TIME.sub(lambda time: f"{int(time[1]) % 12 + 12 * (time[3] in 'pP')}:{time[2] or '00'}", text)


def _parts(number: str) -> tuple[int, ...]:
    """Return the runs of digits of a number, in one if they are groups of thousands."""
    runs = regex.findall(r"\d+", number)
    return (int("".join(runs)),) if _GROUPED.fullmatch(number) else tuple(map(int, runs))


def _filled(template: str, language: str, drawn: random.Random) -> ItemSentence:
    first, *rest = template.split("{")
    text, items = first, []
    for part in rest:
        kind, _, after = part.partition("}")
        item = _item(kind, language, drawn)
        items.append((kind, item))
        text += item + after
    return ItemSentence(text, tuple(items))


def _item(kind: str, language: str, drawn: random.Random) -> str:
    is_german = language == "de"
    if kind == "integer":
        width = drawn.randrange(1, 5)
        return str(drawn.randrange(max(2, 10 ** (width - 1)), 10**width))
    if kind == "year":
        return str(drawn.randrange(1750, 2030))
    if kind == "decimal":
        return f"{drawn.randrange(2, 100)}{',' if is_german else '.'}{drawn.randrange(11, 99)}"
    if kind == "percentage":
        return f"{drawn.randrange(2, 100)} %" if is_german else f"{drawn.randrange(2, 100)}%"
    if kind == "time":
        hour, minute = drawn.randrange(1, 13), f"{drawn.randrange(60):02}"
        return f"{hour + 11}:{minute} Uhr" if is_german else f"{hour}:{minute} {drawn.choice(('am', 'pm'))}"
    if kind == "date":
        day, month, year = drawn.randrange(1, 29), drawn.choice(_MONTHS[language]), drawn.randrange(1900, 2030)
        if is_german:
            return f"{day}. {month} {year}"
        return drawn.choice((f"{month} {day}, {year}", f"{day} {month} {year}"))
    return f"{drawn.choice(_GIVEN)} {drawn.choice(_FAMILY)}"


def main(
    bundles: Annotated[list[Path], typer.Argument(metavar="BUNDLE")],
    number: int = 500,
    seed: int = 1,
    beam_size: int = 4,
    show: Annotated[int, typer.Option(help="number of wrong answers to print")] = 0,
) -> None:
    """Print the share of right items of each kind, as a Markdown table, for each bundle."""
    print("| bundle | sentences | item | items | right | share |\n|---|---|---|---|---|---|")
    for folder in bundles:
        bundle = load_bundle(folder)
        languages = bundle.config.source_languages[0], target_language(bundle, None)
        sentences = item_sentences(seed, number, languages[0])
        tokenizer, engine = open_tokenizer(bundle), InProcessEngine(bundle)
        params = SentenceParams(beam_size=beam_size, max_new_tokens=bundle.config.shapes.max_target_tokens)
        completions = engine.decode([tokenizer.encode(each.text, languages[1]) for each in sentences], params)
        total, right = Counter[str](), Counter[str]()
        num_shown = 0
        for sentence, completion in zip(sentences, completions, strict=True):
            answer = tokenizer.decode(completion.hypotheses[0].token_ids)
            found = right_items(sentence, answer, languages)
            for (kind, _), is_right in zip(sentence.items, found, strict=True):
                names = [kind, "all", *(["integers, dates and times"] if kind in CHECKED_TOGETHER else [])]
                total.update(names)
                right.update(names if is_right else [])
            if not all(found) and num_shown < show:
                num_shown += 1
                typer.echo(f"{sentence.text}\n  {answer}", err=True)
        for name in (*_KINDS, "integers, dates and times", "all"):
            share = 100 * right[name] / max(1, total[name])
            print(f"| {bundle.config.name} | {number} | {name} | {total[name]} | {right[name]} | {share:.1f} % |")


if __name__ == "__main__":
    typer.run(main)
