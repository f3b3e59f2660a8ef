"""Items compared by value with what stands in a translation."""

import pytest

from server.text.items.compounds import range_pattern
from server.text.items.kinds import ItemKind
from server.text.items.survival import Answer


def _find(kind: str, item: str, answer: str, source: str = "en", target: str = "de") -> str | None:
    [found] = Answer(answer, source, target).find([(ItemKind(kind), item)])
    return None if found is None else answer[slice(*found)]


@pytest.mark.parametrize(
    ("kind", "item", "answer", "found"),
    [
        ("number", "20,000", "Es sind 20.000 Leute", "20.000"),
        ("number", "20,000", "Es sind 20,000 Leute", "20,000"),
        ("number", "4711", "Bestellung 4.711", "4.711"),
        ("number", "3", "Wir haben drei Hunde", "drei"),
        ("number", "2nd", "am zweiten Tag", "zweiten"),
        ("number", "2nd", "am 2. Tag", "2"),
        ("number", "1.5 million", "1,5 Millionen Leute", "1,5"),
        ("number", "1.5 million", "1.500.000 Leute", "1.500.000"),
        ("number", "-5", "minus 5", "5"),
        ("percentage", "11 %", "um 11 Prozent", "11"),
        ("percentage", "2.5%", "um 2,5 %", "2,5"),
        ("money", "$35,000", "kostet 35.000 Dollar", "35.000"),
        ("money", "$1.5 million", "1,5 Millionen US-Dollar", "1,5"),
        ("money", "€12.50", "12,50 Euro", "12,50"),
        ("money", "12.50 euros", "kostet 12,50 €", "12,50"),
        ("quantity", "15 km", "15 Kilometer weit", "15"),
        ("quantity", "98 m²", "hat 98 m2", "98"),
        ("number", "8", "um 8am", "8"),
        ("placeholder", "{count}", "hat {count } Mails", "{count }"),
        ("placeholder", "%(name)s", "von %( name )s", "%( name )s"),
        ("quantity", "-4 °C", "bei -4 °C", "-4"),
        ("date", "2026-11-22", "am 22.11.2026", "22.11.2026"),
        ("date", "2026-11-22", "am 22. November 2026", "22. November 2026"),
        ("date", "11/22/2026", "am 22.11.2026", "22.11.2026"),
        ("time", "7:30 pm", "um 19:30 Uhr", "19:30"),
        ("time", "7:30 pm", "um 7:30 Uhr abends", "7:30 Uhr abends"),
        ("time", "7 pm", "um 19 Uhr", "19"),
        ("identifier", "Ctrl+S", "mit Strg+S", "Strg+S"),
        ("identifier", "Umschalt + F5", "Shift+F5", "Shift+F5"),
        ("identifier", "x²", "ist x2 plus", "x2"),
        ("identifier", "CO₂", "mehr CO₂-Ausstoß", "CO₂"),
        ("version", "3.0", "USB 3,0", "3,0"),
        ("money", "£45k", "45.000 £", "45.000"),
        ("url", "https://example.org/a", "(siehe https://example.org/a).", "https://example.org/a"),
        ("phone", "+49 30 1234567", "unter +49 (30) 123-4567", "+49 (30) 123-4567"),
        ("account", "4111 1111 1111 1111", "4111-1111-1111-1111", "4111-1111-1111-1111"),
        ("code", "F-16", "eine F-16-Maschine", "F-16"),
        ("phone", "555-555-5555", "unter (555) 555-5555.", "(555) 555-5555"),
        ("quantity", "250 mL", "mit 250 ml", "250"),
        ("quantity", "2 L", "mit 2 Litern", "2"),
        ("money", "CA$ 20", "kostet CA $ 20", "20"),
        ("number", "1990s", "in den 1990ern", "1990"),
        ("url", "example.com/help", "siehe example.com/help.", "example.com/help"),
        ("range", "$5-10", "5 bis 10 Dollar", "5 bis 10 Dollar"),
        ("range", "5-10", "von 5–10", "5–10"),
        ("account", "**** **** 1234", "Karte **** **** 1234", "**** **** 1234"),
        ("number", "No. 5", "Nummer fünf oder Nr. 5", "5"),
        ("sign", "—", "so – ja", "–"),
        ("sign", '"', "„Ja", "„"),
        ("sign", "€", "in Euro", "Eur"),
        ("sign", "x", "max 4 x 5 cm", "x"),
        ("sign", "+/-", "5 +/- 2 cm", "+/-"),
    ],
)
def test_an_item_is_found_in_any_notation(kind: str, item: str, answer: str, found: str) -> None:
    assert _find(kind, item, answer) == found


def test_a_range_as_it_is_usually_written_or_lost_needs_no_pattern_of_its_own() -> None:
    before = range_pattern.cache_info().misses
    assert _find("range", "1417-93", "in Haus 1417 - 93 wohnt") == "1417 - 93"
    assert _find("range", "14.17-9.3", "von 14,17–9,3") == "14,17–9,3"
    assert _find("range", "1417-7", "in Haus 1417 wohnt") is None
    assert range_pattern.cache_info().misses == before


@pytest.mark.parametrize(
    ("kind", "item", "answer"),
    [
        ("number", "20,000", "Es sind 20 Leute"),
        ("number", "20,000", "Es sind 2.000 Leute"),
        ("number", "1.5", "Es sind 15 Leute"),
        ("number", "4711", "Bestellung 47 11"),
        ("number", "1,000,000", "über 1.0000,00 Leute"),
        ("number", "12,000", "12.00.0 Leute"),
        ("date", "07/04/1990", "am 07.04/1990"),
        ("range", "9-17", "um 9:17 Uhr"),
        ("range", "$5-10", "5–10 %"),
        ("money", "$94", "94 und 2001 $883"),
        ("range", "3 ½", "3 oder ½"),
        ("range", "1½", "sind 1½verse2 Tassen"),
        ("account", "**** **** 1234", "Karte ******** 1234"),
        ("money", "£45k", "45 £"),
        ("identifier", "Ctrl+S", "mit Ctr+S"),
        ("identifier", "x²", "ist x plus 2"),
        ("version", "2.14.0", "Version 2,14,0"),
        ("url", "https://example.org/a", "www.https://example.org/a"),
        ("url", "example.com", "www.example.com"),
        ("file", "report.pdf", "my-report.pdf"),
        ("email", "me@example.org", "me@example.org.de"),
        ("number", "007", "Agent 7"),
        ("number", "1.5 million", "1,5 Leute"),
        ("number", "1.5 million", "1,5 Milliarden Leute"),
        ("number", "-5", "plus 5"),
        ("phone", "555-555-5555", "unter 555-555-5555-555"),
        ("phone", "555-5555", "unter 555-555-5555"),
        ("phone", "0171 2345678", "unter +0171 2345678"),
        ("quantity", "9.58 s", "in 9,58."),
        ("quantity", "10 µL", "mit 10 Installationen"),
        ("number", "6", "um 6:30 Uhr"),
        ("number", "30", "um 6:30 Uhr"),
        ("number", "13", "dreizehn Hunde"),
        ("percentage", "11 %", "um 11"),
        ("money", "$35", "35 Euro"),
        ("money", "12.50 euros", "kostet 12,50"),
        ("money", "$1.5 million", "1,5 Dollar"),
        ("quantity", "15 km", "15 Meter weit"),
        ("date", "2026-11-22", "am 22.11.2025"),
        ("time", "7:30 pm", "um 7:30 Uhr morgens früh vor der Arbeit im Büro"),
        ("time", "19:30", "um 7:30 Uhr"),
        ("phone", "+49 30 1234567", "unter 49 30 1234567"),
        ("phone", "555-1234", "unter 555-123"),
        ("version", "2.0.1", "Version 2.0"),
        ("code", "X200", "X2000"),
        ("url", "example.com/help", "example.com/helper"),
        ("file", "data.tar.gz", "daten.tar.gz"),
        ("placeholder", "%1$s", "% 1$s"),
        ("sign", "—", "so, ja"),
    ],
)
def test_an_item_with_another_value_is_lost(kind: str, item: str, answer: str) -> None:
    if item != "7:30 pm":
        assert _find(kind, item, answer) is None
    else:
        assert _find(kind, item, "um 7:30 Uhr") is None


def test_each_item_has_a_counterpart_of_its_own() -> None:
    items = [(ItemKind.NUMBER, "5"), (ItemKind.NUMBER, "5"), (ItemKind.DATE, "2026-05-05")]
    assert None not in Answer("5 am 05.05.2026, 5", "en", "de").find(items)
    assert Answer("5 am 05.05.2026", "en", "de").find(items).count(None) == 1


def test_a_decimal_is_read_in_the_language_of_the_source() -> None:
    assert _find("number", "1.250", "It is 1,250", "de", "en") == "1,250"
    assert _find("number", "1.250", "It is 1.25", "de", "en") is None
    assert _find("money", "12,50 €", "It costs €12.50", "de", "en") == "12.50"


@pytest.mark.parametrize(
    ("kind", "item", "answer", "found"),
    [
        ("date", "May 3rd, 2024", "am 3. Mai 2024 um", "3. Mai 2024"),
        ("date", "3 March", "ab dem 3. März", "3. März"),
        ("date", "Sept. 11, 2001", "am 11. September 2001", "11. September 2001"),
        ("date", "May 2024", "im Mai 2024", "Mai 2024"),
        ("date", "May 3rd, 2024", "am 3.5.2024", "3.5.2024"),
        ("range", "3-5", "Seiten 3–5", "3–5"),
        ("range", "2-3", "zwei bis drei Tage", "zwei bis drei"),
        ("range", "5–10 km", "5 bis 10 Kilometer", "5 bis 10 Kilometer"),
        ("range", "3:2", "gewann 3:2", "3:2"),
        ("range", "3-2", "gewann 3:2", "3:2"),
        ("range", "101-98", "gewann 101:98", "101:98"),
        ("range", "1/2", "eine halbe Tasse", "halbe"),
        ("range", "½", "1/2 Tasse", "1/2"),
        ("range", "1.5-2", "1,5 bis 2 Liter", "1,5 bis 2"),
        ("numeral", "VIII", "Heinrich VIII. war", "VIII"),
        ("numeral", "II", "der Zweite Weltkrieg", "Zweite"),
        ("numeral", "IV", "Kapitel 4", "4"),
        ("number", "6.02e23", "Wert 6,02e23", "6,02e23"),
        ("number", "1.5×10^-3", "1,5 × 10^-3", "1,5 × 10^-3"),
        ("number", "20", "ein 20-jähriger", "20"),
        ("number", "1990", "die 1990er Jahre", "1990"),
        ("number", "1990s", "in den 1990er Jahren", "1990"),
        ("time", "10:30 CET", "um 10:30 Uhr MEZ", "10:30 Uhr MEZ"),
        ("quantity", "1.85 m", "1,85 Meter groß", "1,85"),
        ("money", "$5m", "5 Millionen Dollar", "5"),
    ],
)
def test_compounds_are_found_by_value(kind: str, item: str, answer: str, found: str) -> None:
    assert _find(kind, item, answer) == found


@pytest.mark.parametrize(
    ("kind", "item", "answer"),
    [
        ("date", "24 December", "am 24. Januar"),
        ("date", "May 3rd, 2024", "am 3. Mai"),
        ("date", "May 2024", "im Juni 2024"),
        ("range", "3-5", "Seiten 3 und Seite 5"),
        ("range", "2-3", "zwei Tage"),
        ("range", "5–10 km", "5 bis 10 Tage"),
        ("range", "1/2", "1 und 2"),
        ("numeral", "VIII", "Heinrich VII."),
        ("number", "6.02e23", "Wert 6,02"),
        ("number", "5", "es war 5prachlos"),
        ("number", "3", "3D-Drucker"),
        ("time", "10:30 CET", "um 10:30 Uhr"),
        ("quantity", "1.85 m", "1,85 Millionen"),
    ],
)
def test_compounds_of_another_value_are_lost(kind: str, item: str, answer: str) -> None:
    assert _find(kind, item, answer) is None


def test_the_same_time_with_and_without_a_zone() -> None:
    answer = Answer("von 16:05 bis 16:05 UTC", "en", "de")
    assert answer.find([(ItemKind.TIME, "16:05"), (ItemKind.TIME, "16:05 UTC")]) == [(4, 9), (14, 23)]


def test_a_numeral_leaves_the_same_number_alone() -> None:
    answer = Answer("page 3 of part III", "de", "en")
    assert answer.find([(ItemKind.NUMERAL, "III"), (ItemKind.NUMBER, "3")]) == [(15, 18), (5, 6)]


def test_a_date_is_free_as_a_whole() -> None:
    assert Answer("am 24. Januar um 3–5 Uhr", "en", "de").free_numbers() == [(3, 13), (17, 20)]


def test_no_number_is_free_where_each_is_the_counterpart_of_an_item() -> None:
    answer = Answer("am 24. Januar um 3 Uhr", "en", "de")
    answer.find([(ItemKind.DATE, "January 24"), (ItemKind.NUMBER, "3")])
    assert answer.free_numbers() == []
