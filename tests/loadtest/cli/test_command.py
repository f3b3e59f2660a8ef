import json
from pathlib import Path

from typer.testing import CliRunner, Result

from kvasir_commands import app
from loadtest.results.run_folder import RunFolder
from loadtest.results.thresholds import Thresholds
from tests.loadtest.answering import Reply, answering
from tests.loadtest.simulated_run import Load, SimulatedServer, identical_answers, write_run

SERVER = SimulatedServer(loads=(Load("half", rate=20.0, seconds=8.0),), thresholds=Thresholds(min_goodput=1000.0))


def _report(folder: RunFolder, *flags: str) -> Result:
    return CliRunner().invoke(app, ["loadtest", "report", str(folder.path), *flags])


def test_a_repeated_report_has_the_exit_code_of_the_run_unless_other_thresholds_are_given(tmp_path: Path) -> None:
    folder = write_run(tmp_path, SERVER, answer_check=identical_answers())
    again = _report(folder)
    assert again.exit_code == 2
    assert again.stdout.splitlines()[-1].startswith("exit 2: goodput is ")
    assert "goodput at least 1000 requests/s" in (tmp_path / "report.md").read_text(encoding="utf-8")
    other = _report(folder, "--min-goodput", "1")
    assert other.exit_code == 0
    assert "every threshold held" in other.stdout.splitlines()[-1]
    assert folder.info().thresholds == SERVER.thresholds


SECOND = """
name = "a second"
description = ""
[[kinds]]
name = "sentence"
[[stages]]
name = "open"
rate = 30
seconds = 1
"""
WRONG = Reply(body=json.dumps({"translations": [{"text": "WRONG", "source_tokens": 3, "target_tokens": 1}]}).encode())


def test_a_server_with_one_fault_of_each_kind_does_not_pass(tmp_path: Path) -> None:
    scenario, out = tmp_path / "second.toml", tmp_path / "run"
    scenario.write_text(SECOND, encoding="utf-8")
    faults = {5: WRONG, 9: Reply(500)}
    with answering(lambda texts, number: faults.get(number)) as server:
        flags = ["--url", server.url, "--scenario", str(scenario), "--output", str(out), "--max-error-ratio", "0"]
        ended = CliRunner().invoke(app, ["loadtest", *flags, "--no-urgent"])
    sent = len(list(RunFolder(out).records()))
    # 3 where the machine is so busy that the generator was late, too.
    assert ended.exit_code in (2, 3), ended.output
    last = ended.stdout.splitlines()[-1]
    assert f"exit 2: 1 of {sent - 1} answers under load differ from those of the idle server" in last
    assert f"{1 / sent:.2%} of the requests failed, above 0.00%" in last
