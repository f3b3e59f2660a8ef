from dataclasses import replace
from pathlib import Path

import pytest

from loadtest.results.run_folder import (
    AnswerCheckResult,
    BadRunFolder,
    Difference,
    GeneratorInfo,
    MachineInfo,
    MetricsSample,
    RunFolder,
    RunInfo,
    ServerInfo,
    StageInfo,
)
from tests.loadtest.results.test_records import ANSWERED

STAGE = StageInfo("steady", 20.0, None, started=0.0, warm_up_ended=1.0, sending_ended=11.0, drained=11.5)
INFO = RunInfo(
    scenario={"name": "steady", "stages": [{"name": "steady", "rate": 20.0}]},
    seed=1,
    url="http://127.0.0.1:8000",
    label="",
    started_at="2026-01-01T00:00:00Z",
    versions={"python": "3.11"},
    machine=MachineInfo("a processor", 2, "Linux"),
    generator=GeneratorInfo(cpu_seconds=1.15, wall_seconds=11.5, num_processes=1, nice=0),
    server=ServerInfo(models={"models": []}, cpu_seconds=None, resident_bytes_before=None, resident_bytes_after=None),
    knee=None,
    stages=(STAGE,),
)


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    guard = AnswerCheckResult(3, 2, 40, 2 / 3, (Difference(7, "steady", "Hello.", "Hallo.", "Halo."),))
    folder.write_info(INFO)
    folder.write_answer_check(guard)
    assert folder.info() == INFO
    assert folder.answer_check() == guard
    folder.records_file.write_text(ANSWERED.to_json() + "\n", encoding="utf-8")
    folder.metrics_file.write_text('{"at": 1.0, "metrics": {"kvasir_requests_waiting": 2}}\n', encoding="utf-8")
    assert list(folder.records()) == [ANSWERED]
    assert folder.metrics() == (MetricsSample(1.0, {"kvasir_requests_waiting": 2.0}),)


def test_a_stage_measures_what_was_due_within_its_window() -> None:
    due = {at: STAGE.measures(replace(ANSWERED, scheduled=at)) for at in (0.9, 1.0, 10.9, 11.0)}
    assert due == {0.9: False, 1.0: True, 10.9: True, 11.0: False}
    assert not STAGE.measures(replace(ANSWERED, stage="spike"))
    assert STAGE.window_seconds == 10.0


def test_a_folder_that_is_no_run_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadRunFolder, match=str(tmp_path)):
        RunFolder(tmp_path).info()
    with pytest.raises(BadRunFolder, match=r"records\.jsonl"):
        RunFolder(tmp_path).records()
    (tmp_path / "run.json").write_text('{"seed": "many"}', encoding="utf-8")
    with pytest.raises(BadRunFolder, match=r"run\.json: "):
        RunFolder(tmp_path).info()
