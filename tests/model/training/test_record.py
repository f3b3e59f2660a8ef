import json
from pathlib import Path

import pytest

from model.training.record import markdown, read_record
from tests.model.training.toy_runs import toy_settings, train


def _written(folder: Path, *entries: dict[str, float]) -> Path:
    folder.mkdir()
    lines = [json.dumps(entry) + "\n" for entry in entries]
    (folder / "log.jsonl").write_text("".join(lines) + '{"step": 9', "utf-8")
    return folder


def test_a_run_reports_its_updates_tokens_and_scores(data: Path, unseen: Path, tmp_path: Path) -> None:
    trainer = train(toy_settings(data, validation=str(unseen)), tmp_path / "run")
    record = read_record(tmp_path / "run")
    assert (record.name, record.updates) == ("run", 12)
    assert [step for step, _ in record.scores] == [3, 6, 9, 12]
    labels = [entry["labels"] for entry in trainer.run_folder.log() if "labels" in entry]
    assert record.target_tokens == sum(labels) > 12 * 40
    assert 0 < record.hours < 0.1


def test_runs_are_added_up_in_a_table(tmp_path: Path) -> None:
    first = _written(
        tmp_path / "a",
        {"step": 500, "labels": 2e6, "seconds": 7200, "labels_per_second": 1},
        {"step": 500, "validation_bleu": 14.26},
        {"step": 1000, "labels": 1e6, "seconds": 3600, "labels_per_second": 1},
        {"step": 1000, "validation_bleu": 15.84},
    )
    second = _written(tmp_path / "b", {"step": 20, "labels": 5e5, "seconds": 1800, "labels_per_second": 1})
    assert markdown([read_record(first), read_record(second)]).splitlines()[2:] == [
        "| a | 1,000 | 3.0 M | 3.0 | 14.3 (500), 15.8 (1,000) |",
        "| b | 20 | 0.5 M | 0.5 | not validated |",
        "| all | 1,020 | 3.5 M | 3.5 | not validated |",
    ]


def test_a_folder_without_a_log_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not the folder of a training run"):
        read_record(tmp_path)
