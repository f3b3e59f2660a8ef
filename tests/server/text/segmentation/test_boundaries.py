from itertools import pairwise

import pytest

from server.text.segmentation.boundaries import BoundaryRules, rules_of
from tests.linear_time import assert_linear_time
from tests.server.text.segmentation.hard_cases import LANGUAGES, hard_cases, wrong_cases


def _rules(language: str) -> BoundaryRules:
    rules = rules_of(language)
    assert rules is not None
    return rules


# Wrong cases of some 255 each: with the lines at hand, and held out. Better rules get smaller numbers.
_NUM_WRONG = {
    "en": (4, 3), "de": (0, 2), "fr": (4, 2), "es": (1, 2), "it": (5, 3), "pt": (4, 5), "nl": (4, 8), "pl": (8, 10),
}  # fmt: skip


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("language", LANGUAGES)
def test_all_hard_cases_but_a_few_are_split_right(language: str, held_out: bool) -> None:
    cases = hard_cases(language, held_out=held_out)
    assert len(cases) >= 250
    wrong = wrong_cases(cases, lambda text: list(_rules(language).sentences(text)))
    assert len(wrong) == _NUM_WRONG[language][held_out], wrong


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentences_together_are_the_line(language: str) -> None:
    for case in hard_cases(language, held_out=True):
        line = "  " + "".join(case).replace(" ", " \u00a0 ") + " \t"
        assert "".join(_rules(language).sentences(line)) == line


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('He left. "Why?" she asked.', ["He left. ", '"Why?" she asked.']),
        ("He left. “Why?” she asked.", ["He left. ", "“Why?” she asked."]),
        ("He left. (It rained.) She stayed.", ["He left. ", "(It rained.) ", "She stayed."]),
        ("今天很好。我们走吧！「好。」他说。", ["今天很好。", "我们走吧！", "「好。」", "他说。"]),
        ('They came early. "', ['They came early. "']),
        ("hi there. how are you? fine, e.g. now!", ["hi there. ", "how are you? ", "fine, e.g. now!"]),
        ("Yahoo! is old. They know.", ["Yahoo! is old. ", "They know."]),
        ("I use .NET. It works.", ["I use .NET. ", "It works."]),
        ("", []),
    ],
)
def test_marks_belong_to_the_sentence_that_they_open_or_close(line: str, expected: list[str]) -> None:
    assert list(_rules("en").sentences(line)) == expected


def test_regions_have_the_rules_of_their_language_and_other_languages_none() -> None:
    assert list(_rules("pt-BR").sentences("O Sr. Silva saiu.")) == ["O Sr. Silva saiu."]
    assert rules_of("ja") is None
    assert rules_of("") is None


@pytest.mark.parametrize(
    "unit", [".", '!"', ". ", "Mr. ", "z. B. ", "Dr. A. ", "5. ", '. "', "a.b.", "?! x", "(", "« "]
)
def test_the_time_grows_with_the_length(unit: str) -> None:
    def split(line: str) -> None:
        assert "".join(_rules("de").sentences(line)) == line

    assert_linear_time(lambda length: unit * (length // len(unit)) + "x", split, 12_000)


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_check_for_usual_ends_changes_no_sentence(
    language: str, held_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = _rules(language)
    lines = ["".join(case) for case in hard_cases(language, held_out=held_out)]
    lines += [f"{first.strip()} {second.strip()} {first.strip()}" for first, second in pairwise(lines)]
    checked = [list(rules.sentences(line)) for line in lines]
    monkeypatch.setattr(BoundaryRules, "_surely_ends", lambda *args: False)
    assert [list(rules.sentences(line)) for line in lines] == checked
