"""Abbreviations, eras, ordinals and dates as models read them, and the positions of both forms."""

import pytest

from server.text.spelled_out import spelled_out

GERMAN = spelled_out("de", "fr")
TO_ENGLISH = spelled_out("de", "en")
TO_GERMAN = spelled_out("en", "de")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Tee inkl. Kuchen, u. a. mit Obst.", "Tee einschließlich Kuchen, unter anderem mit Obst."),
        ("U. a. gibt es Tee.", "Unter anderem gibt es Tee."),
        ("Es gibt u.a. Tee (inkl. Kuchen).", "Es gibt unter anderem Tee (einschließlich Kuchen)."),
        ("Er wiegt ca. 30 kg.", "Er wiegt ungefähr 30 kg."),
        ("Er wiegt ca. dreißig Kilo.", "Er wiegt ca. dreißig Kilo."),
        ("Es gibt Tee u. a.", "Es gibt Tee u. a."),
        ("Es gibt Tee u. a. (auch grünen).", "Es gibt Tee u. a. (auch grünen)."),
        ("Min. 3 Tage, in 5 min. 30 Meter.", "Mindestens 3 Tage, in 5 min. 30 Meter."),
        ("Es gibt Tee u. a. m. und Kuchen.", "Es gibt Tee u. a. m. und Kuchen."),
        ("Auf www.inkl. steht x.ca. 3", "Auf www.inkl. steht x.ca. 3"),
        ("INKL. KUCHEN", "INKL. KUCHEN"),
        ("Tee z. B. mit Kuchen usw. und Dr. Klein", "Tee z. B. mit Kuchen usw. und Dr. Klein"),
    ],
)
def test_an_abbreviation_is_spelled_out_where_the_sentence_goes_on(text: str, read: str) -> None:
    assert GERMAN.in_full(text) == spelled_out("de-CH", "en-GB").in_full(text) == read
    assert spelled_out("", "de").in_full(text) == spelled_out("fr", "de").in_full(text) == text


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Im 19. Jh. und im 20. Jh.", "Im 19. Jahrhundert und im 20. Jahrhundert."),
        ("Nach 2 Std. 15 Min. oder (1 Std.) kam er.", "Nach 2 Stunden 15 Minuten oder (1 Stunde) kam er."),
        ("Es dauert 1½ Std. und 2 ¼ Std. lang.", "Es dauert 1½ Stunden und 2 ¼ Stunden lang."),
        ("Nach 1,1 Std. und 21 Std. kam er.", "Nach 1,1 Stunden und 21 Stunden kam er."),
        ("Art. 3 GG, Kap. 2 und Tab. 7", "Artikel 3 GG, Kapitel 2 und Tabelle 7"),
        ("1 Mio. Euro, 5 Mrd. Euro", "1 Million Euro, 5 Milliarden Euro"),
        ("Das dauert 5 Std.", "Das dauert 5 Stunden."),
        ("Eine neue Art. Die Min. sind um.", "Eine neue Art. Die Min. sind um."),
    ],
)
def test_some_abbreviations_stand_beside_numbers(text: str, read: str) -> None:
    assert GERMAN.in_full(text) == read


def test_units_of_time_stand_behind_numbers_and_sections_before() -> None:
    text = "After 1 min. 30 sec. of 2 hrs. see sec. 5, Fig. 3."
    read = "After 1 minute 30 seconds of 2 hours see section 5, Figure 3."
    assert spelled_out("en", "fr").in_full(text) == read


def test_english_initials_keep_their_capitals() -> None:
    text = "The U.S. Army was on Mt. Hood, approx. 5 miles away. It was in the U.S."
    read = "The US Army was on Mount Hood, about 5 miles away. It was in the US."
    assert spelled_out("en-GB", "fr").in_full(text) == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Er starb 44 v. Chr. in Rom.", "Er starb 44 BC in Rom."),
        ("Von 5 v.Chr. bis ins 1. Jh. n. Chr.", "Von 5 BC bis ins 1. Jahrhundert AD."),
        ("§ 5 Abs. 2 S. 1 und Abs. 3 (S. 12)", "§ 5 paragraph 2 S. 1 und paragraph 3 (p. 12)"),
        ("Siehe Abb. 3 auf S. vier.", "Siehe Figure 3 auf S. vier."),
    ],
)
def test_models_into_english_read_what_english_writes(text: str, read: str) -> None:
    assert TO_ENGLISH.in_full(text) == read
    assert all(each not in GERMAN.in_full(text) for each in ("BC", "AD", "p.", "paragraph", "Figure"))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("He died in 44 BC.", "He died in 44 v. Chr."),
        ("In 44 B.C., and in the 5th century BCE (AD 79).", "In 44 v. Chr., and in the 5th century v. Chr. (AD 79)."),
        ('"From 5 B.C. to 79 A.D."', '"From 5 v. Chr. to 79 n. Chr."'),
        ("Vancouver, BC, has 5 BCs and CE marks", "Vancouver, BC, has 5 BCs and CE marks"),
        ("600 BC residents have ISO 9001 CE certified PCs.",) * 2,
        ("In 79 AD it was Pompeii; in 44 BC Caesar died.", "In 79 n. Chr. it was Pompeii; in 44 v. Chr. Caesar died."),
        ("See invoice no. 2024-118 and No. 5.", "See invoice Nr. 2024-118 and Nr. 5."),
        ("I said no. 5 I said: no. Yes.", "I said Nr. 5 I said: no. Yes."),
    ],
)
def test_models_into_german_read_what_german_writes(text: str, read: str) -> None:
    assert TO_GERMAN.in_full(text) == read
    assert spelled_out("en", "fr").in_full(text) == text


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Karl V. war müde, Karl III. (der Dicke) nicht.", "Karl V war müde, Karl III (der Dicke) nicht."),
        ("Johannes Paul II., Papst, rief Peter I. 1721.", "Johannes Paul II, Papst, rief Peter I 1721."),
        ("Das ist im II. und III. Teil, nach Otto L. und Otto V. Klein.",) * 2,
        ("Das war Karl III. Er kam nie.",) * 2,
        ("Das war Karl III.",) * 2,
        ("Anna IVX. kam. Anna C. kam.",) * 2,
    ],
)
def test_a_roman_ordinal_has_no_full_stop_inside_a_sentence(text: str, read: str) -> None:
    assert GERMAN.in_full(text) == read
    assert TO_GERMAN.in_full(text) == text


def test_ranges_are_those_of_the_text_with_its_abbreviations() -> None:
    text = "A u. a. B inkl. C."
    read = GERMAN.in_full(text)
    words = ["A", "unter", "anderem", "B", "einschließ", "lich", "C", "."]
    found = GERMAN.ranges_in(text, [(read.index(word), read.index(word) + len(word)) for word in words])
    assert [text[start:end] for start, end in found] == ["A", "u. a", "u. a", "B", "inkl", "inkl", "C", "."]
    ends = [(0, 0), (len(read), len(read))]
    assert GERMAN.ranges_in(text, ends) == [(0, 0), (len(text), len(text))]
    assert TO_GERMAN.ranges_in(text, [(0, 5)]) == GERMAN.ranges_in("A B.", [(0, 5)]) == [(0, 5)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("In 44 BC.", {"44": "44", "v": "BC", "Chr": "BC", ".": "."}),
        ("In 44 BC we", {"v.": "BC", "Chr.": "BC", "we": "we"}),
    ],
)
def test_ranges_of_an_era_without_a_full_stop(text: str, words: dict[str, str]) -> None:
    read = TO_GERMAN.in_full(text)
    ranges = [(read.rindex(word), read.rindex(word) + len(word)) for word in words]
    found = TO_GERMAN.ranges_in(text, ranges)
    assert [text[start:end] for start, end in found] == list(words.values())


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Wir haben vom 24.12. bis 01.1. zu.", "Wir haben vom 24. Dezember bis 1. Januar zu."),
        ("Am 2.3., also bald, am 32.3. nie.", "Am 2. März, also bald, am 32.3. nie."),
        ("In Version 1.1. ist es so, in Abschnitt 2.3. auch.",) * 2,
        ("Er kam am 24.12.2024 und am 24.12. Anna kam auch.",) * 2,
        ("Seit 1.10 ist es so, am 2.3.",) * 2,
        ("Di., 6.5., und Montag, 7.5. um 8", "Dienstag, 6. Mai, und Montag, 7. Mai um 8"),
        (
            "Ende des 2.3. und vor dem 3.10., Mo., den 4.5. um 8",
            "Ende des 2. März und vor dem 3. Oktober, Montag, den 4. Mai um 8",
        ),
    ],
)
def test_a_day_and_a_month_are_read_in_words(text: str, read: str) -> None:
    assert GERMAN.in_full(text) == read
    assert TO_GERMAN.in_full(text) == text


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Das kostet CHF 1'250.- im Monat.", "Das kostet CHF 1'250 im Monat."),
        ("Das kostet 20,-- Euro, also 20,-.", "Das kostet 20 Euro, also 20."),
        ("Nur 5,-!", "Nur 5!"),
        ("Für 20,– Euro, CHF 5.– und 7,–€", "Für 20 Euro, CHF 5 und 7€"),
        ("Vom 3.- 5. Mai, 10.-12. Mai, der 3.-beste, a,- b",) * 2,
    ],
)
def test_an_amount_is_read_without_its_dash(text: str, read: str) -> None:
    assert GERMAN.in_full(text) == TO_GERMAN.in_full(text) == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Mix 250 mL with 2dL (5 cL).", "Mix 250 ml with 2dl (5 cl)."),
        ("It is −5 °C (−3 °C), from 2 −1", "It is -5 °C (-3 °C), from 2 -1"),
        ("HTML and mL, 1431 L Street, 5 mLs, 3−1, x −y",) * 2,
    ],
)
def test_units_and_signs_are_read_as_models_have_seen_them_most(text: str, read: str) -> None:
    assert GERMAN.in_full(text) == TO_GERMAN.in_full(text) == spelled_out("", "de").in_full(text) == read


def test_ranges_of_an_amount_with_a_dash() -> None:
    assert GERMAN.ranges_in("Für 20,- Euro.", [(4, 6), (7, 11), (11, 12)]) == [(4, 6), (9, 13), (13, 14)]


def test_ranges_of_a_roman_ordinal() -> None:
    found = GERMAN.ranges_in("Karl III. war", [(0, 4), (5, 8), (9, 12)])
    assert found == [(0, 4), (5, 8), (10, 13)]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Mo., 5. Mai, und am Do., dem 8. Juni", "Montag, 5. Mai, und am Donnerstag, dem 8. Juni"),
        ("Am Fr., 5.6., oder Fr. den 6. um 8", "Am Freitag, 5. Juni, oder Freitag den 6. um 8"),
        ("Das kostet Fr. 20 so. Und So. Mo.–Fr. 9–17 Uhr.",) * 2,
    ],
)
def test_a_german_day_of_the_week_is_spelled_out_before_a_date(text: str, read: str) -> None:
    assert GERMAN.in_full(text) == read
    assert TO_GERMAN.in_full(text) == text


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("It was Wed., March 12th, or Tues. morning.", "It was Wednesday, March 12th, or Tuesday morning."),
        (
            "From Thu. 16 July; Sat. at 4 p.m.; on Mon. we go",
            "From Thursday 16 July; Saturday at 4 p.m.; on Monday we go",
        ),
        ("They sat. The Sun. 5 planets go round the Sun. Mon.-Fri. 9 to 5 we do.",) * 2,
    ],
)
def test_an_english_day_of_the_week_is_spelled_out_beside_a_time(text: str, read: str) -> None:
    assert TO_GERMAN.in_full(text) == read
    assert GERMAN.in_full(text) == text


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Lehrer:innen und Leser*in, Kolleg*innen", "Lehrer und Leser, Kolleginnen"),
        ("Autor:innen-Treffen für Leser*innen!", "Autorinnen-Treffen für Leser!"),
        ("Die:in-range, Lehrer:in-x, Datei:inhalt, Leser*innenbrief, er:in",) * 2,
    ],
)
def test_forms_for_women_and_men_are_read_as_one(text: str, read: str) -> None:
    assert GERMAN.in_full(text) == read
    assert TO_GERMAN.in_full(text) == text


def test_ranges_of_forms_for_women_and_men() -> None:
    assert GERMAN.ranges_in("Leser*innen da", [(0, 5), (6, 8)]) == [(0, 5), (12, 14)]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Fr. Klein und Hr. Prof. Groß, für 5 Fr. Tee", "Frau Klein und Herr Professor Groß, für 5 Fr. Tee"),
        ("Am 5. Jan. 2020, i. d. R. vllt. am Do.", "Am 5. Januar 2020, in der Regel vielleicht am Do."),
    ],
)
def test_titles_and_months_in_german(text: str, read: str) -> None:
    assert GERMAN.in_full(text) == read


def test_english_short_forms_of_messages_and_months() -> None:
    text = "Tea w/ milk, pls come w/o it b/c of Prof. Klein on Oct. 5; a/w/ b, src/b/c x, in Oct. we"
    read = (
        "Tea with milk, please come without it because of Professor Klein on October 5; a/w/ b, src/b/c x, in Oct. we"
    )
    assert TO_GERMAN.in_full(text) == read
    assert TO_GERMAN.in_full("Tea w/ milk") == "Tea with milk"
