import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_signal_ends_an_export_and_deletes_half_of_the_bundle(checkpoint: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kvasir", "export", str(checkpoint), str(tmp_path / "out" / "bundle")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "exporting the encoder" not in (line := process.stderr.readline()):
            assert line, "the export has ended"
        process.terminate()
        rest = process.stderr.read()
    assert process.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in rest
    assert not list((tmp_path / "out").iterdir())
