"""Times of day and ranges of them: found in a translation, and written as its language does."""

import pytest

from server.text.items.clock_times import is_unusual_time, localized_time, seconds_of
from server.text.items.kinds import ItemKind
from server.text.items.matching import find_items
from server.text.items.survival import Answer


@pytest.mark.parametrize(
    ("time", "minute"),
    [
        ("7:30 pm", 1170),
        ("19:30", 1170),
        ("12 a.m.", 0),
        ("12 pm", 720),
        ("19.30", 1170),
        ("0:05", 5),
        ("17 Uhr", 1020),
        ("8 Uhr morgens", 480),
        ("8 Uhr abends", 1200),
        ("12 Uhr mittags", 720),
        ("1 Uhr mittags", 780),
        ("12 Uhr nachts", 0),
        ("2 at night", 120),
        ("11 o'clock at night", 1380),
        ("3 in the afternoon", 900),
        ("20 Uhr abends", 1200),
    ],
)
def test_a_time_is_a_second_of_the_day(time: str, minute: int) -> None:
    assert seconds_of(time) == 60 * minute


def test_other_texts_are_no_times() -> None:
    assert seconds_of("25:00") is seconds_of("12:60") is seconds_of("7:30:61") is seconds_of("noon") is None


@pytest.mark.parametrize(
    "time",
    [
        "7:30",
        "3:30 PM",
        "7pm",
        "9am-5pm",
        "9 am – 5 pm",
        "9:00–17:00",
        "9–17 Uhr",
        "8.30–12.00 Uhr",
        "17 Uhr",
        "20:15 Uhr",
        "half past eight",
        "quarter to 9",
        "halb neun",
        "Viertel nach sieben",
        "8.30 Uhr",
        "8 Uhr früh",
        "8:15 Uhr abends",
        "8 o'clock in the evening",
    ],
)
def test_times_are_one_item(time: str) -> None:
    text = f"x {time} y"
    assert [(text[each.start : each.end], each.kind) for each in find_items(text)] == [(time, ItemKind.TIME)]


@pytest.mark.parametrize(
    ("time", "source", "answer", "found"),
    [
        ("3:30 PM", "en", "um 15:30 Uhr.", "15:30"),
        ("3:30 p.m.", "en", "um 3:30 Uhr nachmittags", "3:30 Uhr nachmittags"),
        ("17 Uhr", "de", "at 5 p.m. today", "5 p.m."),
        ("17 Uhr", "de", "at 5 o'clock", "5"),
        ("17 Uhr", "de", "at five o'clock", "five o'clock"),
        ("17 Uhr", "de", "at 17:00", "17:00"),
        ("15.30 Uhr", "de", "at 3:30 pm", "3:30 pm"),
        ("8 Uhr abends", "de", "at 8 p.m.", "8 p.m."),
        ("8 Uhr abends", "de", "at 8 in the evening.", "8 in the evening"),
        ("8 Uhr abends", "de", "at eight o'clock in the evening", "eight o'clock in the evening"),
        ("8 Uhr morgens", "de", "at eight o'clock", "eight o'clock"),
        ("12 Uhr mittags", "de", "at twelve o'clock", "twelve o'clock"),
        ("8 in the evening", "en", "um 20 Uhr", "20"),
        ("8 in the evening", "en", "um acht Uhr abends", "acht Uhr abends"),
        ("8 in the morning", "en", "um 8 Uhr morgens", "8 Uhr morgens"),
        ("3:30 pm", "en", "um 15:30 am Montag", "15:30"),
        ("9am-5pm", "en", "von 9 bis 17 am Montag", "9 bis 17"),
        ("half past eight", "en", "um halb neun", "halb neun"),
        ("half past eight", "en", "um 20:30 Uhr", "20:30"),
        ("quarter to one", "en", "um Viertel vor eins", "Viertel vor eins"),
        ("viertel nach 7", "de", "at quarter past seven", "quarter past seven"),
        ("halb eins", "de", "at 12:30", "12:30"),
        ("9am-5pm", "en", "von 9 bis 17 Uhr", "9 bis 17 Uhr"),
        ("9-5 pm", "en", "9:00–17:00 Uhr", "9:00–17:00 Uhr"),
        ("10-11 am", "en", "10–11 Uhr", "10–11 Uhr"),
        ("9–17 Uhr", "de", "open 9 a.m. to 5 p.m.", "9 a.m. to 5 p.m."),
    ],
)
def test_a_time_is_found_with_either_clock(time: str, source: str, answer: str, found: str) -> None:
    target = "en" if source == "de" else "de"
    [span] = Answer(answer, source, target).find([(ItemKind.TIME, time)])
    assert span is not None
    assert answer[slice(*span)] == found


@pytest.mark.parametrize(
    ("time", "source", "answer"),
    [
        ("17 Uhr", "de", "at 17 p.m."),
        ("14 Uhr", "de", "at 14 a.m."),
        ("17 Uhr", "de", "at 5 a.m."),
        ("17 Uhr", "de", "at 5 in the morning"),
        ("17 Uhr", "de", "at five a.m."),
        ("8 Uhr morgens", "de", "at 8 p.m."),
        ("7:45 Uhr", "de", "at 7:45 p.m"),
        ("half past eight", "en", "um halb acht"),
        ("halb neun", "de", "at half past nine"),
        ("Viertel vor zehn", "de", "at ten in the morning"),
        ("8 Uhr abends", "de", "at 8 o'clock"),
        ("8 Uhr abends", "de", "at eight o'clock"),
        ("8 Uhr morgens", "de", "at 8 in the evening"),
        ("8 in the evening", "en", "um acht Uhr morgens"),
        ("8 in the evening", "en", "um 8 Uhr morgens"),
        ("3:30 PM", "en", "um 3:30 Uhr"),
        ("9am-5pm", "en", "von 9 bis 5 Uhr"),
        ("9–17 Uhr", "de", "open at 9 and 18"),
        ("10:30 CET", "en", "um 10:30 Uhr PST"),
    ],
)
def test_another_time_is_lost(time: str, source: str, answer: str) -> None:
    assert Answer(answer, source, "en" if source == "de" else "de").find([(ItemKind.TIME, time)]) == [None]


@pytest.mark.parametrize(
    ("time", "target", "written"),
    [
        ("3:30 PM", "de", "15:30"),
        ("3:30:15 pm", "de", "15:30:15"),
        ("9am–5pm", "de", "9:00–17:00"),
        ("12-2 pm", "de", "12:00–14:00"),
        ("9am–5pm", "en", "9am–5pm"),
        ("17 Uhr", "en", "17:00"),
        ("9–17 Uhr", "en", "9:00–17:00"),
        ("8.30 Uhr", "en", "8:30"),
        ("8 Uhr abends", "en", "20:00"),
        ("8 in the evening", "de", "20:00"),
        ("19:30", "en", "19:30"),
        ("3:30 pm CET", "de", "15:30 MEZ"),
        ("67 pm", "de", "67 pm"),
    ],
)
def test_times_are_written_with_the_clock_of_the_target_language(time: str, target: str, written: str) -> None:
    assert localized_time(time, target) == written


@pytest.mark.parametrize("text", ["We saw 8 in the morning.", "There were 3 at night.", "at 8 in the mornings"])
def test_a_number_beside_a_part_of_the_day_may_be_no_time(text: str) -> None:
    assert ItemKind.TIME not in {each.kind for each in find_items(text)}


def test_an_hour_behind_a_preposition_and_before_a_part_of_the_day_is_a_time() -> None:
    text = "We meet at 8 in the evening."
    assert [(text[each.start : each.end], each.kind) for each in find_items(text)] == [
        ("8 in the evening", ItemKind.TIME)
    ]


def test_ranges_in_the_notation_of_another_language_are_unusual() -> None:
    assert is_unusual_time("9–17", "en")
    assert is_unusual_time("9 – 5 pm", "de")
    assert not is_unusual_time("9 – 5 pm", "en")
    assert not is_unusual_time("9:00–17:00", "de")
    assert not is_unusual_time("17 Uhr", "de")
