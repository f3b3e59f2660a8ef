"""Attacks and failures that take long, some forty minutes in all: `python -m tests.faults`."""

import subprocess
import sys

PROGRAMS = (
    "hostile_uploads",
    "loop_holds",
    "engine_storm",
    "drain_under_load",
    "greedy_client",
    "memory_returns",
    "fuzz_requests",
)

if __name__ == "__main__":
    subprocess.run([sys.executable, "-m", "pytest", "tests/faults/hostile_documents.py"], check=True)
    for program in PROGRAMS:
        subprocess.run([sys.executable, "-m", f"tests.faults.{program}"], check=True)
