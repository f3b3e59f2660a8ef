import json
import subprocess
import sys

from tests.end_to_end.servers import ROOT, Served

REQUESTS = {"sentence", "list", "/translate", "upload", "progress", "download", "deletion"}


def test_the_plain_locustfile_runs_headless_and_every_kind_of_request_is_answered(served: Served) -> None:
    command = [sys.executable, "-m", "locust", "-f", str(ROOT / "loadtest" / "plain_locustfile.py"), "-H", served.url]
    # 24 users: 18 native, 4 LibreTranslate, 2 that upload documents.
    command += [
        "--headless",
        "--users",
        "24",
        "--spawn-rate",
        "24",
        "--run-time",
        "9s",
        "--stop-timeout",
        "20",
        "--json",
    ]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr  # Locust exits with 1 if a request failed
    statistics = {row["name"]: row for row in json.loads(ran.stdout)}
    assert set(statistics) == REQUESTS
    assert all(row["num_requests"] > 0 and row["num_failures"] == 0 for row in statistics.values())
    steps = [line.split()[-6] for line in ran.stderr.splitlines() if "Shape test updating to" in line]
    assert steps == ["6", "12", "24"]
