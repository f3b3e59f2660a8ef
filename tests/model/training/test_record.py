import json
from pathlib import Path

from model.training.record import read_record
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
