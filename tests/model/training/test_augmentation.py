import re
from random import Random

import pytest

from model.training.augmentation import (
    Augmentation,
    AugmentationSettings,
    ItemGenerator,
    noisy,
    with_other_names,
    with_other_numbers,
)

BOTH = ("en", "de")
PAIRS = [(f"Give me {number} books.", f"Gib mir {number} Bücher.") for number in range(3, 203)]


def _additional(settings: AugmentationSettings, share: float = 1.0, seed: int = 1) -> list[tuple[str, str]]:
    extra: list[tuple[str, str]] = []
    assert list(Augmentation(settings, BOTH, seed).observed(PAIRS, share, extra)) == PAIRS
    return extra


@pytest.mark.parametrize("kind", ["copied", "noisy", "joined"])
def test_additional_pairs_follow_the_share_of_the_file(kind: str) -> None:
    for number, share, expected in ((0.25, 1.0, 50), (0.25, 2.0, 100), (1.5, 1.0, 300)):
        found = _additional(AugmentationSettings(**{kind: number}), share)
        assert expected * 0.7 <= len(found) <= expected * 1.3
    assert _additional(AugmentationSettings()) == []


def test_other_numbers_are_the_same_on_both_sides_and_keep_their_magnitude() -> None:
    random = Random(1)
    pair = ("On 12 May 1987 at 4:05 we sold 1,250 of 12.", "Am 12. Mai 1987 um 4:05 verkauften wir 1.250 von 12.")
    for _ in range(200):
        found = with_other_numbers(pair, random)
        assert found is not None
        numbers = re.findall(r"\d+", found[0])
        assert numbers == re.findall(r"\d+", found[1])
        assert numbers[0] == numbers[-1]
        assert 2 <= int(numbers[0]) <= 12
        assert 1500 <= int(numbers[1]) < 2100
        assert [len(number) for number in numbers[3:6]] == [2, 1, 3]
        assert numbers[4] == "1"  # a plural would follow another number


@pytest.mark.parametrize("pair", [("No number.", "Keine Zahl."), ("7 cats", "sieben Katzen"), ("1 cat", "1 Katze")])
def test_a_pair_without_equal_numbers_that_may_change_is_left_out(pair: tuple[str, str]) -> None:
    assert with_other_numbers(pair, Random(1)) is None


def test_a_name_of_both_sides_becomes_another_one_of_both_sides() -> None:
    found = with_other_names(("Tom saw Tom's House.", "Tom sah das Haus."), Random(1))
    assert found is not None
    name = found[1].split()[0]
    assert name != "Tom"
    assert found == (f"{name} saw {name}'s House.", f"{name} sah das Haus.")
    assert with_other_names(("He saw it.", "Er sah es."), Random(1)) is None


def test_generated_items_have_the_notation_of_each_language() -> None:
    generator = ItemGenerator(BOTH, Random(3))
    found = [generator.pair(("Yes.", "Ja.")) for _ in range(400)]
    assert any(re.search(r"\d,\d{3}\.\d", source) and re.search(r"\d\.\d{3},\d", target) for source, target in found)
    assert any(re.search(r"\d (AM|PM)", source) and not re.search(r"AM|PM", target) for source, target in found)
    assert any("@" in source and source == target for source, target in found)
    assert any("Yes." in source for source, _ in found)
    assert all(("Yes." in source) == ("Ja." in target) for source, target in found)
    assert "\u202f" not in "".join(map("".join, found))


def test_noise_changes_the_source_and_capitals_both_sides() -> None:
    random = Random(5)
    pair = ("The old house is green.", "Das alte Haus ist grün.")
    found = [noisy(pair, random) for _ in range(300)]
    assert {target for _, target in found} == {pair[1], pair[1].upper()}
    assert all((target == pair[1].upper()) == (source == pair[0].upper()) for source, target in found)
    assert {"the old house is green.", "The old house is green"} < {source for source, _ in found}
    assert pair not in found
