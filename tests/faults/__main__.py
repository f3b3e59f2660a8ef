"""Attacks and failures that take long, some thirty minutes in all: `python -m tests.faults`."""

import subprocess
import sys

if __name__ == "__main__":
    for program in ("hostile_uploads", "loop_holds", "engine_storm", "fuzz_requests"):
        subprocess.run([sys.executable, "-m", f"tests.faults.{program}"], check=True)
