from pathlib import Path

import pytest

from benchmarks.servers.__main__ import main

TUNING_RUN = "tuning/kvasir/closed-loop"


@pytest.mark.parametrize("run", [TUNING_RUN, "rounds/round-1/kvasir-knee", "."])
def test_an_output_folder_that_contains_a_run_is_refused_before_anything_starts(
    run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / run).mkdir(parents=True, exist_ok=True)
    (tmp_path / run / "records.jsonl").touch()
    before = sorted(tmp_path.rglob("*"))
    assert main(["--checkpoint", str(tmp_path / "checkpoint"), "--output", str(tmp_path)]) == 1
    assert sorted(tmp_path.rglob("*")) == before
    error = capsys.readouterr().err
    assert error == f"error: {tmp_path} already contains a run, {tmp_path / run}; set another folder with --output\n"
