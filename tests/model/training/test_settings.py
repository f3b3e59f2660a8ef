from pathlib import Path

import pytest

from model.training.settings import DataFile
from tests.model.training.toy_runs import toy_settings


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
        ({"data": ()}, "`data` must contain at least one file"),
        ({"data": (DataFile("a.tsv", 0.0),)}, r"the share of a.tsv must be more than 0. Given: 0.0"),
        ({"validation": "a.tsv"}, "both training and validation data"),
        ({"validation": "./b/../a.tsv"}, "both training and validation data"),
        (
            {"batch_tokens": 0, "max_steps": -1},
            "`max_steps` must be at least 1. Given: -1; `batch_tokens` must be at least 1. Given: 0",
        ),
        ({"validate_every": 7}, "`validate_every` must be a multiple of `snapshot_every` 3. Given: 7"),
        ({"dropout": 1.0}, "`dropout` must be at least 0 and less than 1. Given: 1.0"),
        ({"copied_pairs": -0.1}, "`copied_pairs` must be at least 0. Given: -0.1"),
        ({"subword_dropout": 1.0}, "`subword_dropout` must be at least 0 and less than 1. Given: 1.0"),
        ({"learning_rate": 0.0}, "`learning_rate` must be more than 0. Given: 0.0"),
    ],
)
def test_invalid_settings_are_rejected_with_the_reason(changed: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        toy_settings(Path("a.tsv"), **changed)


def test_a_run_can_be_prolonged_only_with_a_schedule_that_does_not_depend_on_its_end() -> None:
    for schedule, differences in (("inverse-square-root", []), ("cosine", ["max_steps was 12 and is 24"])):
        earlier = toy_settings(Path("a.tsv"), schedule=schedule).to_json()
        assert toy_settings(Path("a.tsv"), schedule=schedule, max_steps=24).differences(earlier) == differences
