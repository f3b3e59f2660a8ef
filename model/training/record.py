"""The effort and the scores of training runs for a model card, from their own logs.

    python -m model.training.record RUN ...

prints a Markdown section: updates, target tokens and hours of each run, and its BLEU by update.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from model.training.run_folder import LogEntry

_SECONDS_OF_HOUR = 3600


@dataclass(frozen=True, slots=True)
class TrainingRecord:
    """Effort of one run, and (update, validation BLEU) pairs. Hours are those in which updates ran."""

    name: str
    updates: int
    target_tokens: int
    hours: float
    scores: tuple[tuple[int, float], ...]

    @property
    def curve(self) -> str:
        """The scores as text: `14.3 (1,000), 15.8 (2,000)`."""
        return ", ".join(f"{bleu:.1f} ({step:,})" for step, bleu in self.scores) or "not validated"


def read_record(run: Path) -> TrainingRecord:
    """Return the record of a run. Raises ValueError for a folder without a log."""
    file = run / "log.jsonl"
    if not file.is_file():
        raise ValueError(f"{file} is missing; {run} is not the folder of a training run")
    # The last line of a killed run can be incomplete.
    log: list[LogEntry] = [json.loads(line) for line in file.read_text("utf-8").split("\n")[:-1]]
    steps = [entry for entry in log if "labels_per_second" in entry]
    return TrainingRecord(
        run.name,
        int(steps[-1]["step"]) if steps else 0,
        round(sum(entry["labels"] for entry in steps)),
        sum(entry["seconds"] for entry in steps) / _SECONDS_OF_HOUR,
        tuple((int(entry["step"]), entry["validation_bleu"]) for entry in log if "validation_bleu" in entry),
    )


def markdown(records: Sequence[TrainingRecord]) -> str:
    """Return a table with a row for each run and their sum."""
    lines = ["| run | updates | target tokens | hours | BLEU after updates |", "|---|---|---|---|---|"]
    rows = [*records]
    if len(records) > 1:
        total = TrainingRecord(
            "all",
            sum(each.updates for each in records),
            sum(each.target_tokens for each in records),
            sum(each.hours for each in records),
            records[-1].scores[-1:],
        )
        rows.append(total)
    for each in rows:
        tokens = f"{each.target_tokens / 1e6:.1f} M"
        lines.append(f"| {each.name} | {each.updates:,} | {tokens} | {each.hours:.1f} | {each.curve} |")
    return "\n".join(lines)


def main(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN ...", help="Folders of training runs, in order.")],
) -> None:
    """Print what runs cost and reached, as a Markdown table."""
    typer.echo(markdown([read_record(run) for run in runs]))


if __name__ == "__main__":
    typer.run(main)
