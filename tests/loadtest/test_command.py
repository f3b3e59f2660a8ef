from pathlib import Path

from typer.testing import CliRunner, Result

from kvasir import app
from loadtest.run_folder import RunFolder
from loadtest.thresholds import Thresholds
from tests.loadtest.simulated_run import Load, SimulatedServer, good_guard, write_run

SERVER = SimulatedServer(loads=(Load("half", rate=20.0, seconds=8.0),), thresholds=Thresholds(min_goodput=1000.0))


def _report(folder: RunFolder, *flags: str) -> Result:
    return CliRunner().invoke(app, ["loadtest", "report", str(folder.path), *flags])


def test_a_report_made_again_ends_as_the_run_did_unless_it_is_given_other_thresholds(tmp_path: Path) -> None:
    folder = write_run(tmp_path, SERVER, guard=good_guard())
    again = _report(folder)
    assert again.exit_code == 2
    assert again.stdout.splitlines()[-1].startswith("exit 2: goodput is ")
    assert "goodput at least 1000 requests/s" in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert _report(folder, "--min-goodput", "1").exit_code == 0
    stricter = _report(folder, "--max-p95-ms", "1")
    assert stricter.exit_code == 2
    assert "p95 of stage half is " in stricter.stdout
    assert "below 1000" in stricter.stdout
    assert folder.info().thresholds == SERVER.thresholds
