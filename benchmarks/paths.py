"""Paths that several benchmarks share."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DEFAULT_BUNDLE = ROOT / "models" / "en-de"
SENTENCES = ROOT / "loadtest" / "workload" / "sentences.txt"  # one per line, without references
OUTPUT = ROOT / "build" / "bench"
