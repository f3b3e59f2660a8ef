"""Items in the notation of another language."""

import pytest

from server.text.items.kinds import ItemKind
from server.text.items.notation import localized

NO_BREAK = "\N{NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("kind", "item", "source", "target", "written"),
    [
        ("number", "20,000", "en", "de", "20.000"),
        ("number", "1.250", "en", "de", "1,250"),
        ("number", "1.250", "de", "en", "1,250"),
        ("number", "1,234.56", "en", "de", "1.234,56"),
        ("number", "1,234.56", "en", "fr", "1\N{NARROW NO-BREAK SPACE}234,56"),
        ("number", "1998", "en", "de", "1998"),
        ("number", "1.5 million", "en", "de", "1,5 Millionen"),
        ("number", "1.5 billion", "en", "de", "1,5 Milliarden"),
        ("number", "2nd", "en", "de", "2."),
        ("number", "1.5", "de", "en", "1.5"),
        ("percentage", "11%", "en", "de", f"11{NO_BREAK}%"),
        ("percentage", "2,5 %", "de", "en", "2.5%"),
        ("money", "$35,000", "en", "de", f"35.000{NO_BREAK}$"),
        ("money", "12,50 €", "de", "en", "€12.50"),
        ("money", "12,50 Euro", "de", "en", "12.50 euros"),
        ("money", "1 dollar", "en", "de", "1 Dollar"),
        ("money", "USD 75", "en", "de", f"75{NO_BREAK}USD"),
        ("quantity", "3.5 kg", "en", "de", "3,5 kg"),
        ("date", "12/25/2026", "en", "de", "25.12.2026"),
        ("date", "25.12.2026", "de", "en", "12/25/2026"),
        ("date", "05/04/2026", "en", "de", "05/04/2026"),
        ("date", "31/12/2025", "en", "de", "31.12.2025"),
        ("date", "2026-11-22", "en", "de", "2026-11-22"),
        ("time", "7:30 pm", "en", "de", "19:30"),
        ("time", "19:30", "de", "en", "19:30"),
        ("time", "20:15 Uhr", "de", "en", "20:15"),
        ("time", "half past twelve", "en", "de", "halb eins"),
        ("time", "Viertel vor 1", "de", "en", "quarter to one"),
        ("time", "halb neun", "de", "fr", "8:30"),
        ("version", "2.0.1", "en", "de", "2.0.1"),
        ("code", "1,5-A", "de", "en", "1,5-A"),
        ("phone", "555.1234", "en", "de", "555.1234"),
        ("number", "20,000", "en", "en-GB", "20,000"),
    ],
)
def test_an_item_is_written_as_the_target_language_does(
    kind: str, item: str, source: str, target: str, written: str
) -> None:
    assert localized(ItemKind(kind), item, source, target) == written


@pytest.mark.parametrize(
    ("kind", "item", "source", "target", "localized_item"),
    [
        ("date", "May 3rd, 2024", "en", "de", "3. Mai 2024"),
        ("date", "3. Mai 2024", "de", "en", "May 3, 2024"),
        ("date", "24 December", "en", "de", "24. Dezember"),
        ("date", "24.12.", "de", "en", "December 24"),
        ("date", "May 2024", "en", "fr", "mai 2024"),
        ("date", "3 de mayo de 2024", "es", "it", "3 maggio 2024"),
        ("date", "February 30", "en", "de", "February 30"),
        ("time", "3:30 pm CET", "en", "de", "15:30 MEZ"),
        ("time", "10:30 MESZ", "de", "en", "10:30 CEST"),
        ("range", "1.5-2", "en", "de", "1,5-2"),
        ("range", "$5–$10", "en", "de", f"5–10{NO_BREAK}$"),
        ("range", "1.000–2.500 €", "de", "en", "€1,000–2,500"),
        ("number", "No. 5", "en", "de", "Nr. 5"),
        ("number", "Nr. 5", "de", "fr", "n° 5"),
        ("money", "5,- €", "de", "en", "€5"),
        ("numeral", "VIII.", "de", "en", "VIII"),
        ("time", "67 pm", "en", "de", "67 pm"),
        ("word", "-12.5 °C", "en", "de", "-12,5 °C"),
        ("word", "naïve", "en", "de", "naïve"),
        ("number", "1990s", "en", "de", "1990er"),
        ("number", "1990er", "de", "en", "1990s"),
        ("number", "1990s", "en", "fr", "1990"),
        ("money", "6,5 Millionen Euro", "de", "en", "6.5 million euros"),
        ("money", "£45k", "en", "de", "45.000\u00a0£"),
        ("money", "$2.5k", "en", "de", "2.500\u00a0$"),
        ("money", "€5m", "en", "de", "5 Millionen\u00a0€"),
        ("money", "2 mil millones de euros", "es", "en", "2 billion euros"),
        ("number", "6.02e23", "en", "de", "6,02e23"),
    ],
)
def test_compounds_in_the_notation_of_the_target(
    kind: str, item: str, source: str, target: str, localized_item: str
) -> None:
    assert localized(ItemKind(kind), item, source, target) == localized_item
