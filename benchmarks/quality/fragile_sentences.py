"""Brackets, single quotation marks, names with signs and negations that survive translation, class by class.

    python -m benchmarks.quality.fragile_sentences BUNDLE [--beam-size 4]

The sentences (English or German) were written for this test. They were also used to remove entries from word lists, so
they are not held out. Prints the share of each class that was kept, and the sentences that were not. The last line is
the decoding in rows times steps.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from bundle.loading import load_bundle
from server.interface.decoding_options import DecodingOptions
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import TranslationRequest
from server.workers.engine_pool import EnginePool
from server.workers.pool_options import PoolOptions

_PLAIN = {
    "en": (
        "The house is old.", "I saw him in the garden.", "She wants to go home.", "We will come tomorrow.",
        "The children play in the street.", "My brother has a new car.", "The water was cold.",
        "They know the answer.", "He laughs.", "The door was open.", "It is raining again.", "Please wait here.",
    ),
    "de": (
        "Das Haus ist alt.", "Ich habe ihn im Garten gesehen.", "Sie will nach Hause gehen.", "Wir kommen morgen.",
        "Die Kinder spielen auf der Straße.", "Mein Bruder hat ein neues Auto.", "Das Wasser war kalt.",
        "Sie kennen die Antwort.", "Er lacht.", "Die Tür war offen.", "Es regnet wieder.", "Bitte warten Sie hier.",
    ),
}  # fmt: skip
_QUOTED = {
    "en": (
        "He said 'good morning' to me.", "The word 'house' is old.", "We read 'The Old Man' at school.",
        "She calls it 'my garden'.", "The so-called 'friends' did come.", "'Wait here,' he said.",
        "They shouted 'stop' and ran.", "Press ‘Start’ to begin.", "His ‘new’ car is old.", "I wrote 'water' on it.",
    ),
    "de": (
        "Er sagte 'guten Morgen' zu mir.", "Das Wort 'Haus' ist alt.", "Wir lasen 'Der alte Mann' in der Schule.",
        "Sie nennt es 'meinen Garten'.", "Die sogenannten ‚Freunde‘ kamen.", "'Warte hier', sagte er.",
        "Sie riefen ‚halt‘ und liefen.", "Drücken Sie 'Start', um zu beginnen.", "Sein ‚neues‘ Auto ist alt.",
        "Ich schrieb 'Wasser' darauf.",
    ),
}  # fmt: skip
_NAMES = ("C#", "C++", "F#", ".NET", "A/B", "TCP/IP", "R&D", "AT&T", "I/O", "Q&A", "OS/2", "J#")
_ABOUT_NAMES = {
    "en": ("I learn {} at school.", "The book is about {}.", "{} is easy."),
    "de": ("Ich lerne {} in der Schule.", "Das Buch handelt von {}.", "{} ist einfach."),
}
_NEGATED = {
    "en": (
        "Smoking is forbidden.", "No parking.", "Parking prohibited", "Do not touch.", "do not open this door",
        "No entry", "no smoking", "Swimming is not allowed here.", "Never leave the key in the car.", "No dogs.",
        "Photography is prohibited in the museum.", "You must not drink this water.", "He can't swim.",
        "None of them came to the party.", "I have never seen the sea.", "There is nothing in the box.",
        "They won't help us.", "She left without her coat.", "We don't have any bread.", "It isn't cold today.",
        "Neither of them knew the way.", "I would not do that.", "The shop is not open on Sunday.",
        "Do not feed the animals.", "access forbidden", "Cycling not permitted", "Cannot save the file.",
        "The user has no permission.", "No results found.", "Not available in your country.",
        "The password must not be empty.", "don't worry", "I'm not angry with you.", "He doesn't hate his work.",
        "The meeting will not take place.", "We cannot accept your offer.", "There are no open questions.",
        "You should not pay this bill.", "The contract is not valid.", "it never works",
    ),
    "de": (
        "Rauchen ist verboten.", "Parken verboten", "rauchen verboten", "Nicht anfassen.", "diese Tür nicht öffnen",
        "Kein Zutritt", "Betreten verboten!", "Baden ist hier nicht erlaubt.", "Lass den Schlüssel nie im Auto.",
        "Keine Hunde.", "Fotografieren ist im Museum untersagt.", "Du darfst dieses Wasser nicht trinken.",
        "Er kann nicht schwimmen.", "Niemand kam zur Feier.", "Ich habe das Meer nie gesehen.",
        "In der Kiste ist nichts.", "Sie werden uns nicht helfen.", "Sie ging ohne ihren Mantel.",
        "Wir haben kein Brot.", "Heute ist es nicht kalt.", "Keiner von beiden kannte den Weg.",
        "Das würde ich nicht tun.", "Der Laden ist am Sonntag nicht offen.", "Die Tiere nicht füttern.",
        "Zutritt untersagt", "Radfahren nicht gestattet", "Die Datei kann nicht gespeichert werden.",
        "Der Benutzer hat keine Rechte.", "Keine Treffer gefunden.", "In Ihrem Land nicht verfügbar.",
        "Das Passwort darf nicht leer sein.", "keine Sorge", "Ich bin dir nicht böse.", "Er hasst seine Arbeit nicht.",
        "Das Treffen findet nicht statt.", "Wir können Ihr Angebot nicht annehmen.", "Es gibt keine offenen Fragen.",
        "Sie sollten diese Rechnung nicht bezahlen.", "Der Vertrag ist nicht gültig.", "niemand weiß es",
    ),
}  # fmt: skip
_NEGATIONS = {
    "de": re.compile(
        r"\b(?:nicht|kein\w*|nie|niemals|niemand\w*|nichts|ohne|weder|nein|unmöglich|ungültig\w*|\w*verbot\w*|untersagt|"
        r"verboten\w*|nirgends)\b",
        re.IGNORECASE,
    ),
    "en": re.compile(
        r"\b(?:not|no|never|none|no one|nothing|without|neither|nor|cannot|\w+n['’]t|forbidden|prohibited|"
        r"banned|impossible|invalid|unavailable|keep out|stay out)\b",
        re.IGNORECASE,
    ),
}
_BRACKETS = re.compile(r"[()\[\]]")
_MARKS = re.compile(r"['‘’‚‛‹›\"“”„](?!(?:s|t|re|ve|ll|d|m)\b)")


def fragile_sentences(source: str, target: str) -> Iterator[tuple[str, str, Callable[[str], bool]]]:
    """Yield a class, a sentence of it, and whether a translation has kept what is fragile."""
    for index, sentence in enumerate(_PLAIN[source]):
        for opening, closing in (("(", ")"), ("[", "]")):
            yield "bracketed sentence", f"{opening}{sentence}{closing}", _has_brackets(opening + closing)
        other = _PLAIN[source][index - 1]
        yield "bracketed sentence", f"{other} ({sentence})", _has_brackets("()")
        words = sentence.split()
        yield "remark", " ".join((*words[:2], "[sic]", *words[2:])), lambda text: "[sic]" in text
    for sentence in _QUOTED[source]:
        yield "quotation", sentence, lambda text: len(_MARKS.findall(text)) == 2
    for name in _NAMES:
        for sentence in _ABOUT_NAMES[source]:
            yield "name", sentence.format(name), lambda text, name=name: name in text  # type: ignore[misc]  # a default
    for sentence in _NEGATED[source]:
        for written in dict.fromkeys((sentence, sentence.lower(), sentence.upper())):
            yield "negation", written, lambda text: _NEGATIONS[target].search(text) is not None


def _has_brackets(brackets: str) -> Callable[[str], bool]:
    return lambda text: "".join(_BRACKETS.findall(text)) == brackets


class _Cost:
    """The rows of all decoder steps together."""

    rows = 0

    def step(self, rows: int, seconds: float) -> None:
        """Add a step."""
        self.rows += rows


def main(bundle_folder: Annotated[Path, typer.Argument(metavar="BUNDLE")], beam_size: int = 4) -> None:
    """Print what each class lost."""
    bundle, cost = load_bundle(bundle_folder), _Cost()
    source, target = bundle.config.source_languages[0], bundle.config.target_languages[0]
    cases = list(fragile_sentences(source, target))
    pool = EnginePool.open(bundle, PoolOptions(replicas=1, threads_per_replica=1, max_waiting=1 << 20, observe=cost))
    try:
        options = DecodingOptions(beam_size=beam_size)
        request = TranslationRequest(tuple(sentence for _, sentence, _ in cases), source, target, options)
        result = asyncio.run(Pipeline(pool, TranslationLimits()).translate(request))
    finally:
        pool.close()
    total, kept = Counter[str](), Counter[str]()
    for (name, sentence, is_kept), translation in zip(cases, result.translations, strict=True):
        total[name] += 1
        kept[name] += is_kept(translation.text)
        if not is_kept(translation.text):
            print(f"lost {name}: {sentence!r} -> {translation.text!r}")
    for name, count in total.items():
        print(f"{name:20} {kept[name]:4} of {count:4} kept ({kept[name] / count:.1%})")
    print(f"{cost.rows} rows times steps, beam {beam_size}")


if __name__ == "__main__":
    typer.run(main)
