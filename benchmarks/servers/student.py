"""Servers of a student of the size of Firefox's models: Kvasir beside slimt behind a batching queue.

    python -m benchmarks.servers.student --slimt PYTHON --output FOLDER [options of benchmarks.servers]

The student is that of `benchmarks.engines.student`, with random weights. Its answers have as many tokens as their
source: slimt has no other limit, and Kvasir gets it with each request. A batch of slimt goes on until its longest
answer has ended, as with any weights. Requests are single sentences with the lengths of the scenario "knee". Half of
their words are English, because Kvasir keeps texts that are in no language.
"""

import random
import sys
import tempfile
from pathlib import Path

from benchmarks.engines.student import STUDENT, write_model, write_vocabulary
from benchmarks.servers.__main__ import main as compare
from export.exporter import export_bundle
from loadtest.workload.texts.lengths import length_distribution

_SENTENCES = 4000
_ENGLISH = ("the", "of", "and", "to", "in", "is", "was", "for", "on", "that", "with", "as", "it", "at", "by", "this")
_SCENARIO = """
name = "student"
description = "Single sentences; answers have as many tokens as their source."

[workload]
corpus = "{corpus}"

[[kinds]]
name = "sentence"
options = {{ max_length_ratio = 1, max_repetitions = 0 }}

[search]
"""


def main() -> int:
    """Write the student, its bundle and sentences to a temporary folder, compare, and return the exit code."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        words = write_vocabulary(folder / "vocab.ende.spm", _ENGLISH)
        student = write_model(folder / "student", folder / "vocab.ende.spm", STUDENT)
        bundle = folder / "bundle"
        export_bundle(student, bundle, "int8")
        choose, lengths = random.Random(0), length_distribution("heavy-tailed", "en")  # noqa: S311 - no secret
        with (folder / "sentences.txt").open("w", encoding="utf-8") as lines:
            for _ in range(_SENTENCES):
                count = lengths.num_words(choose.random())
                print(*(choose.choice((_ENGLISH, words)[index % 2]) for index in range(count)), file=lines)
        scenario = folder / "student.toml"
        scenario.write_text(_SCENARIO.format(corpus=folder / "sentences.txt"), "utf-8")
        of_student = ("--checkpoint", str(student), "--bundle", str(bundle), "--scenario", str(scenario))
        fixed = ("--servers", "kvasir,slimt,slimt-bounded", "--beam-size", "1", "--answers", "0")
        return compare([*of_student, *fixed, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
