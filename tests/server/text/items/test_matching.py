import random

import pytest
import regex

from server.text.items.kinds import ItemKind
from server.text.items.matching import compile_patterns, find_items
from server.text.items.patterns import PATTERNS

_ALL_AT_ONCE = regex.compile("|".join(f"(?P<k{index}>{pattern})" for index, (_, pattern) in enumerate(PATTERNS)))

_PARTS = (
    "https://example.com/a(b)?x=1", "www.example.org", "anna.k@mail.org", "{name}", "{{count}}", "%(total)d", "%1$s",
    "50%", "%s", "$HOME", "$(date)", "@:key", ":smile", "[[link]]", "__init__", r"C:\temp\x", r"\\server\share",
    "~/a/b", "./x/y", "src/main/java", "docs/report.pdf", "report.pdf", "Brief an Oma.docx", "example.com/help",
    "--verbose", "max_length", "2024-05-06T10:20:30Z", "12.05.2024", "1/2/24", "2024/1/2", "10:30 p.m.", "5 pm",
    "DE89 3704 0044 0532 0130 00", "1234 5678 9012 3456", "+49 30 123456", "(030) 123456", "555-1234", "v2.1.3",
    "2.0.1", "$5 million", "3,50 €", "EUR 20", "20 Pfund", "7 %", "3 km/h", "5m", "-4.2°C", "AB-1234", "X200",
    "4711-XY", "Meteor-2H", "-1B", "1-2-3", "1 250,5", "1990s", "2nd", "1st", "@anna", "#music-1", "“", "”", '"', "--",
    "–", "…", "...",
    "Ctrl+C", "Strg + Alt + F4", "x²", "CO₂", "10⁻³", "USB 3.0", "Section 3.2", "iOS 17.1",
    "3–5 km", "10 to 12", "Ludwig XIV", "$5–10", "5-10 €", "2 ½", "No. 5", "****1234", "10^6", "a!b2", "~5",
    "€", "<", "=", "§", "\U0001f389", "und", "Tom's", "he/she", "a", ".", ",", ";", "(", ")", "/", "-", "\n", "日本",
    "ﬁ",
)  # fmt: skip


def test_the_items_of_a_text_are_those_of_one_pattern_with_all_alternatives() -> None:
    chooser = random.Random(5)
    found: set[ItemKind] = set()
    of_many = [chooser.choices(_PARTS, k=chooser.randint(2, 12)) for _ in range(700)]
    for parts in [*([part] for part in _PARTS), *of_many]:
        text = "".join(part + chooser.choice(("", " ", " ", "\u00a0")) for part in parts)
        expected = [
            (*match.span(), PATTERNS[int(str(match.lastgroup)[1:])][0]) for match in _ALL_AT_ONCE.finditer(text)
        ]
        assert [(item.start, item.end, item.kind) for item in find_items(text)] == expected, text
        found.update(kind for _, _, kind in expected)
    assert found == {kind for kind, _ in PATTERNS}


def test_a_text_without_items_has_none() -> None:
    assert list(find_items("")) == list(find_items("Nothing of it must survive.")) == []


def test_many_items_take_time_in_proportion_to_their_number() -> None:
    text = "12.05.2024 and max_length, " * 5000
    assert sum(1 for _ in find_items(text)) == 10_000


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("USB 3.0 and Python 3.11", ["3.0 version", "3.11 version"]),
        ("See Section 3.2 and Abb. 4.1", ["3.2 version", "4.1 version"]),
        ("macOS 14.5 needs it", ["14.5 version"]),
        ("EUR 3.50", ["EUR 3.50 money"]),
        ("Meteor-1A, -1B, at -40F", ["1A code", "-1B code", "-40F code"]),
        ("The UK 2.5 million", ["2.5 million number"]),
        ("The GDP 2.5 %", ["2.5 % percentage"]),
        ("It was 3.5 in May", ["3.5 number"]),
        ("Press Ctrl + Shift+T or F5", ["Ctrl + Shift+T identifier", "F5 code"]),
        ("A + B and Tab + space", []),
        ("a² + b² and 10 m²", ["a² identifier", "b² identifier", "10 m² quantity"]),
    ],
)
def test_numbers_of_versions_keys_and_small_digits(text: str, items: list[str]) -> None:
    assert [f"{text[item.start : item.end]} {item.kind}" for item in find_items(text)] == items


def test_patterns_that_were_compiled_before_are_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_patterns()
    monkeypatch.delattr(regex, "compile")
    assert [item.kind for item in find_items("50 € for report.pdf")] == [ItemKind.MONEY, ItemKind.FILE]
