"""Sentences with items from a second grammar, which no rule was made with: letters, signs, orders, sports, recipes."""

import random
from collections.abc import Mapping, Sequence

_TEMPLATES: Mapping[str, Sequence[str]] = {
    "en": (
        "Dear customer, your invoice {invoice} of {date} over {money} is still open.",
        "Our office is open from {time} to {time}, call {phone} for help.",
        "The flight to Rome leaves at {time} on {date} from gate {gate}.",
        "Mix {fraction} cup of milk with {quantity} of flour and bake it for {range} minutes.",
        "They won the match {score} in front of {count} people.",
        "Please write to {email} or look at {url} before {date}.",
        "The new version {version} needs {quantity} of memory.",
        "Sales rose by {percentage} to {money} in {year}.",
        "My brother lives at {house} Garden Street and pays {money} a month.",
        "Save the file {file} in {path} and open it again.",
        "Hello {placeholder}, you have {placeholder} new messages.",
        "It was {temperature} in the morning and {temperature} at night.",
        "We thank {name} and {name} for the pictures with {tag}.",
        "Take the bus {count} times a week; it costs only {money}.",
        "Queen {ruler} ruled for {count} years.",
        "Send {money} to {account} by {date}.",
        "The run command is {code}, and {option} shows more.",
        "Page {count} of {count}: see part {numeral} for the rest.",
        "On {date} she was {count} years old {symbol}",
        "The {ordinal} of them came at {time}, the {ordinal} much later.",
    ),
    "de": (
        "Sehr geehrter Kunde, Ihre Rechnung {invoice} vom {date} über {money} ist noch offen.",
        "Unser Büro ist von {time} bis {time} Uhr offen, rufen Sie {phone} an.",
        "Der Flug nach Rom geht am {date} um {time} Uhr von Tor {gate}.",
        "Mischen Sie {fraction} Tasse Milch mit {quantity} Mehl und backen Sie es {range} Minuten.",
        "Sie gewannen das Spiel {score} vor {count} Leuten.",
        "Bitte schreiben Sie an {email} oder sehen Sie vor dem {date} auf {url} nach.",
        "Die neue Version {version} braucht {quantity} Speicher.",
        "Der Umsatz stieg {year} um {percentage} auf {money}.",
        "Mein Bruder wohnt in der Gartenstraße {house} und zahlt {money} im Monat.",
        "Speichern Sie die Datei {file} in {path} und öffnen Sie sie wieder.",
        "Hallo {placeholder}, Sie haben {placeholder} neue Nachrichten.",
        "Am Morgen waren es {temperature} und in der Nacht {temperature}.",
        "Wir danken {name} und {name} für die Bilder mit {tag}.",
        "Nehmen Sie {count} Mal in der Woche den Bus; er kostet nur {money}.",
        "König {ruler} herrschte {count} Jahre.",
        "Überweisen Sie {money} bis zum {date} an {account}.",
        "Der Befehl heißt {code}, und {option} zeigt mehr.",
        "Seite {count} von {count}: der Rest ist in Teil {numeral}.",
        "Am {date} wurde sie {count} Jahre alt {symbol}",
        "Der {count} von ihnen kam um {time} Uhr, die anderen viel später.",
    ),
}
_ITEMS: Mapping[str, Sequence[str]] = {
    "invoice": ("RE-####", "2024/####", "A##-###", "INV####"),
    "phone": ("+49 89 ######", "0#### ######", "+1 555-###-####"),
    "email": ("info@shop#.com", "anna.b#@mail.org"),
    "url": ("https://www.shop#.com/a/#", "www.garden#.org", "shop.de/hilfe"),
    "version": ("#.#.#", "v#.#", "#.##.#-beta"),
    "gate": ("B##", "C#", "##"),
    "score": ("#:#", "##:##", "#-#"),
    "range": ("#-##", "##–##"),
    "fraction": ("1/2", "3/4", "½", "1/3"),
    "count": ("#", "##", "###"),
    "year": ("19##", "20##"),
    "house": ("#", "##", "##a"),
    "file": ("letter#.docx", "photo_##.jpg", "table.xlsx"),
    "path": ("/srv/anna/files", "C:\\Users\\Tom", "src/app/main"),
    "placeholder": ("{user}", "%s", "%d", "{{count}}", ":name", "%1$s", "${total}"),
    "temperature": ("-# °C", "## °C", "##°C"),
    "name": ("@peter#", "@anna_k"),
    "tag": ("#garden", "#summer##"),
    "ruler": ("Heinrich VIII", "Elisabeth II", "Ludwig XIV"),
    "account": ("DE## #### #### #### #### ##", "#### #### #### ####"),
    "code": ("`make test`", "`ls -l`"),
    "option": ("--help", "--all"),
    "numeral": ("III", "IV", "VII"),
    "symbol": ("🎂", "🎉", "😀"),
    "ordinal": ("#th", "##th"),
}
_OF_LANGUAGE: Mapping[str, Mapping[str, Sequence[str]]] = {
    "en": {
        "money": ("$##.50", "€#,###", "£##", "## euros", "$#.# million"),
        "date": ("May 1#, 20##", "1# June 20##", "20##-1#-1#", "March 2#th"),
        "time": ("#:## am", "1#:30", "# pm", "1#:15 CET"),
        "quantity": ("### g", "#.# GB", "# kg"),
        "percentage": ("#.#%", "## %"),
    },
    "de": {
        "money": ("##,50 €", "#.### Euro", "## EUR", "#,# Millionen Euro"),
        "date": ("1#. Mai 20##", "2#.1#.20##", "1#. Juni"),
        "time": ("#:30", "1#:15", "1#"),
        "quantity": ("### g", "#,# GB", "# kg"),
        "percentage": ("#,# %", "##%"),
    },
}


def held_out_sentences(seed: int, number: int, language: str) -> list[str]:
    """Return random sentences with one to three items of different kinds."""
    drawn = random.Random(seed)  # noqa: S311 - the same seed gives the same sentences
    items = {**_ITEMS, **_OF_LANGUAGE[language]}
    return [_filled(_TEMPLATES[language][index % 20], items, drawn) for index in range(number)]


def _filled(template: str, items: Mapping[str, Sequence[str]], drawn: random.Random) -> str:
    parts = template.split("{")
    filled = [parts[0]]
    for part in parts[1:]:
        name, _, rest = part.partition("}")
        form = drawn.choice(items[name])
        digits = [str(drawn.randrange(2, 8)) if each == "#" and not form.startswith("#g") else each for each in form]
        filled += ["".join(digits), rest]
    return "".join(filled)
