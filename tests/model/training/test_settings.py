from pathlib import Path

import pytest

from model.training.settings import DataFile
from tests.model.training.toy_text import toy_settings


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("a.tsv", DataFile("a.tsv", 1.0)),
        ("a.tsv@0.2", DataFile("a.tsv", 0.2)),
        ("b@home/a.tsv", DataFile("b@home/a.tsv", 1.0)),
        ("b@home/a.tsv@2", DataFile("b@home/a.tsv", 2.0)),
    ],
)
def test_a_file_may_have_a_share(written: str, expected: DataFile) -> None:
    assert DataFile.parse(written) == expected


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"data": ()}, "data is empty"),
        ({"data": (DataFile("a.tsv", 0.0),)}, "the share of a.tsv is 0.0"),
        ({"validation": "a.tsv"}, "both trained and measured on"),
        ({"validation": "./b/../a.tsv"}, "both trained and measured on"),
        ({"batch_tokens": 0, "max_steps": -1}, "max_steps is -1, it must be at least 1; batch_tokens is 0"),
        ({"validate_every": 7}, "validate_every is 7, no multiple of snapshot_every 3"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0"),
    ],
)
def test_settings_that_make_no_sense_are_named_with_the_reason(changed: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        toy_settings(Path("a.tsv"), **changed)


def test_a_run_may_get_longer_only_where_the_schedule_does_not_know_its_end() -> None:
    for schedule, differences in (("inverse-square-root", []), ("cosine", ["max_steps was 12 and is 24"])):
        earlier = toy_settings(Path("a.tsv"), schedule=schedule).to_json()
        assert toy_settings(Path("a.tsv"), schedule=schedule, max_steps=24).differences(earlier) == differences


def test_a_difference_is_told_with_both_values() -> None:
    earlier = toy_settings(Path("a.tsv")).to_json()
    changed = toy_settings(Path("a.tsv"), seed=2, patience=1)
    assert changed.differences(earlier) == ["seed was 1 and is 2"]
