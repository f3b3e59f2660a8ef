"""What a training run keeps on disk: its settings, log and snapshots, the state it goes on from, and the checkpoint."""

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import NotRequired, TypedDict

import torch
from safetensors.torch import save_file
from torch import Tensor

from model.atomic_files import replacing
from model.training.corpus import CorpusRecord
from model.training.settings import TrainingSettings
from model.training.vocabulary import JointVocabulary

LogEntry = dict[str, float]


class State(TypedDict):
    """All that an interrupted run needs to go on as if nothing had been."""

    position: dict[str, float]
    model: dict[str, Tensor]
    optimizer: dict[str, object]
    random: Tensor
    device_random: Tensor | None
    corpus: NotRequired[CorpusRecord]
    """Not in states of before it was kept."""
    validation_sha256: NotRequired[str]
    """Nor without validation."""


class RunFolder:
    """The files of one run. Each is complete or not there: a run that is killed at any moment goes on from the last."""

    def __init__(self, path: Path, checkpoint_name: str) -> None:
        self.path = path
        self.log_file = path / "log.jsonl"
        self.plot_file = path / "loss.png"
        self.checkpoint = path / checkpoint_name
        self._settings_file = path / "settings.json"
        self._state_file = path / "state.pt"
        self._snapshots = path / "snapshots"

    def require_same(self, settings: TrainingSettings) -> None:
        """Raise ValueError that names the differences if the folder is of a run with other settings."""
        if not self._settings_file.exists():
            return
        earlier: dict[str, object] = json.loads(self._settings_file.read_text("utf-8"))
        different = settings.differences(earlier)
        if different:
            raise ValueError(
                f"{self.path} holds another run ({'; '.join(different)}): take another folder, or the same settings"
            )

    def begin(self, settings: TrainingSettings, vocabulary: JointVocabulary) -> None:
        """Make the folder that of these settings, once all that they name is there and fits.

        An attempt that fails earlier leaves nothing that would stand in the way of the next.
        """
        self._snapshots.mkdir(parents=True, exist_ok=True)
        self.checkpoint.mkdir(exist_ok=True)
        if not self.has_state():
            vocabulary.write(self.checkpoint)
        with replacing(self._settings_file) as file:
            file.write_text(json.dumps(settings.to_json(), indent=2) + "\n", "utf-8")

    def has_state(self) -> bool:
        """Whether there is something to go on from. Without it, nothing in the folder counts but the settings."""
        return self._state_file.exists()

    def load_state(self) -> State | None:
        """What the run goes on from; None at the beginning. Raises ValueError where the file is damaged."""
        if not self.has_state():
            return None
        try:
            state: State = torch.load(self._state_file, map_location="cpu", weights_only=True)
        except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
            raise ValueError(
                f"{self._state_file} is damaged, so the run cannot go on: remove the file to begin it again, or "
                f"begin another run with --init {self.checkpoint}, where validation has written one"
            ) from error
        return state

    def save_state(self, state: State) -> None:
        """Replace the state by a later one. Raises OSError."""
        with replacing(self._state_file) as file:
            torch.save(state, file)

    def save_snapshot(self, step: int, weights: Mapping[str, Tensor], keep: int) -> None:
        """Keep the weights of this step, and the `keep` last snapshots in all. Raises OSError."""
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
        with replacing(self._snapshots / f"{step:08}.safetensors") as file:
            save_file(tensors, file)
        for old in self.snapshots()[:-keep]:
            old.unlink()

    def snapshots(self) -> list[Path]:
        """The snapshots, the last one last."""
        return sorted(self._snapshots.glob("*.safetensors"))

    def forget_after(self, step: int) -> None:
        """Remove snapshots and lines of the log that are later than the state: their steps are done again.

        So is a last line that was cut short, which the next one would be appended to.
        """
        for path in self.snapshots():
            if int(path.stem) > step:
                path.unlink()
        if self.log_file.exists():
            kept = [entry for entry in self.log() if entry["step"] <= step]
            with replacing(self.log_file) as file:
                file.write_text("".join(json.dumps(entry) + "\n" for entry in kept), "utf-8")

    def append_log(self, entry: LogEntry) -> None:
        """One line of JSON."""
        with self.log_file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(entry) + "\n")

    def log(self) -> list[LogEntry]:
        """All complete lines so far: those that end with a newline."""
        if not self.log_file.exists():
            return []
        lines = self.log_file.read_text("utf-8").split("\n")[:-1]
        return [json.loads(line) for line in lines]
