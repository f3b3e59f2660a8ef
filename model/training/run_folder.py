"""Files of a training run: settings, log, snapshots, state and checkpoint."""

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
    """State from which an interrupted run continues as if it had not been interrupted."""

    position: dict[str, float]
    model: dict[str, Tensor]
    optimizer: dict[str, object]
    random: Tensor
    device_random: Tensor | None
    corpus: CorpusRecord
    validation_sha256: NotRequired[str]
    """Absent without validation."""


class RunFolder:
    """The files of one run, each complete or absent, so that a killed run continues from the last state."""

    def __init__(self, path: Path, checkpoint_name: str) -> None:
        self.path = path
        self.log_file = path / "log.jsonl"
        self.plot_file = path / "loss.png"
        self.checkpoint = path / checkpoint_name
        self._settings_file = path / "settings.json"
        self._state_file = path / "state.pt"
        self._snapshots = path / "snapshots"

    def require_same(self, settings: TrainingSettings) -> None:
        """Raise ValueError with the differences if the folder belongs to a run with other settings."""
        if not self._settings_file.exists():
            return
        earlier: dict[str, object] = json.loads(self._settings_file.read_text("utf-8"))
        different = settings.differences(earlier)
        if different:
            raise ValueError(
                f"{self.path} belongs to another run ({'; '.join(different)}); use another folder or the same settings"
            )

    def begin(self, settings: TrainingSettings, vocabulary: JointVocabulary) -> None:
        """Create the folder's content for these settings, after all files in them were checked.

        An attempt that fails earlier leaves nothing that prevents the next one.
        """
        self._snapshots.mkdir(parents=True, exist_ok=True)
        self.checkpoint.mkdir(exist_ok=True)
        if not self.has_state():
            vocabulary.write(self.checkpoint)
        with replacing(self._settings_file) as file:
            file.write_text(json.dumps(settings.to_json(), indent=2) + "\n", "utf-8")

    def has_state(self) -> bool:
        """Return whether the run can be resumed. Otherwise only the settings in the folder are used."""
        return self._state_file.exists()

    def load_state(self) -> State | None:
        """Return the saved state, or None at the beginning. Raises ValueError if the file is damaged."""
        if not self.has_state():
            return None
        try:
            state: State = torch.load(self._state_file, map_location="cpu", weights_only=True)
        except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
            raise ValueError(
                f"{self._state_file} is damaged and the run cannot be resumed; remove the file to start again, or "
                f"start another run with --init {self.checkpoint} if validation has written a checkpoint"
            ) from error
        return state

    def save_state(self, state: State) -> None:
        """Replace the state. Raises OSError."""
        with replacing(self._state_file) as file:
            torch.save(state, file)

    def save_snapshot(self, step: int, weights: Mapping[str, Tensor], keep: int) -> None:
        """Save the weights of this step, and keep the last `keep` snapshots. Raises OSError."""
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
        with replacing(self._snapshots / f"{step:08}.safetensors") as file:
            save_file(tensors, file)
        for old in self.snapshots()[:-keep]:
            old.unlink()

    def snapshots(self) -> list[Path]:
        """Return the snapshots, oldest first."""
        return sorted(self._snapshots.glob("*.safetensors"))

    def forget_after(self, step: int) -> None:
        """Remove snapshots and log lines of later steps, which are repeated, and a truncated last line."""
        for path in self.snapshots():
            if int(path.stem) > step:
                path.unlink()
        if self.log_file.exists():
            kept = [entry for entry in self.log() if entry["step"] <= step]
            with replacing(self.log_file) as file:
                file.write_text("".join(json.dumps(entry) + "\n" for entry in kept), "utf-8")

    def append_log(self, entry: LogEntry) -> None:
        """Append one line of JSON to the log."""
        with self.log_file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(entry) + "\n")

    def log(self) -> list[LogEntry]:
        """Return the entries of all complete lines, those that end with a newline."""
        if not self.log_file.exists():
            return []
        lines = self.log_file.read_text("utf-8").split("\n")[:-1]
        return [json.loads(line) for line in lines]
