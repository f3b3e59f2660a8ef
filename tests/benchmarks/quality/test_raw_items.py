import pytest

from benchmarks.quality.raw_items import ItemSentence, item_sentences, right_items

BOTH = ("en", "de")


@pytest.mark.parametrize("language", BOTH)
def test_a_sentence_has_its_items_and_an_answer_that_repeats_them_is_right(language: str) -> None:
    sentences = item_sentences(1, 60, language)
    assert len({sentence.text for sentence in sentences}) == 60
    for sentence in sentences:
        assert all(item in sentence.text for _, item in sentence.items)
        assert all(right_items(sentence, sentence.text, (language, language))), sentence


@pytest.mark.parametrize(
    ("item", "answer", "is_right"),
    [
        (("integer", "1234"), "Das sind 1.234 Stück.", True),
        (("integer", "1234"), "Das sind 1243 Stück.", False),
        (("date", "May 3, 1987"), "Das war am 3. Mai 1987.", True),
        (("date", "May 3, 1987"), "Das war am 3. März 1987.", False),
        (("time", "4:15 pm"), "Um 16:15 Uhr.", True),
        (("time", "4:15 pm"), "Um 4:50 Uhr.", False),
        (("time", "4:15 am"), "Um 16:15 Uhr.", False),
        (("time", "12:40 am"), "Um 0:40 Uhr.", True),
        (("time", "7:00 pm"), "Um 19 Uhr.", True),
        (("integer", "7"), "Das sind sieben Stück.", True),
        (("integer", "7"), "Das sind 70 Stück.", False),
        (("percentage", "40%"), "Etwa 40 % davon.", True),
        (("decimal", "12.45"), "Es kostet 12,45 Euro.", True),
        (("name", "Lena Novak"), "Lena Nowak kommt.", False),
        (("name", "Lena Novak"), "Lena Novak kommt.", True),
    ],
)
def test_an_item_is_compared_by_value_and_a_name_by_its_letters(
    item: tuple[str, str], answer: str, is_right: bool
) -> None:
    assert right_items(ItemSentence(item[1], (item,)), answer, BOTH) == [is_right]
