"""TrainingSettings: everything a training run depends on, so that the same settings give the same weights."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from os.path import realpath
from typing import Literal

Schedule = Literal["inverse-square-root", "cosine"]
Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True, slots=True)
class DataFile:
    """Parallel text, and what an epoch takes of it: 1 is every pair once, 0.2 a fifth (another one each epoch)."""

    path: str
    share: float = 1.0

    @classmethod
    def parse(cls, written: str) -> "DataFile":
        """`FILE` or `FILE@SHARE`."""
        path, separator, share = written.rpartition("@")
        if not separator:
            return cls(written)
        try:
            return cls(path, float(share))
        except ValueError:
            return cls(written)


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How a model is trained. Raises ValueError naming every setting that makes no sense.

    Token counts are of padded batches, source and target together.
    """

    data: tuple[DataFile, ...]
    source_language: str
    target_language: str
    swap_columns: bool = False
    """The second column of the files is the source."""
    validation: str | None = None
    """Parallel text that is measured on; never trained on."""
    max_validation_pairs: int = 500
    initial: str | None = None
    """Folder of a checkpoint to start from, with its vocabulary and sizes. None: random weights, a new vocabulary."""

    vocab_size: int = 8000
    d_model: int = 256
    num_heads: int = 4
    feed_forward_width: int = 1024
    num_encoder_layers: int = 6
    num_decoder_layers: int = 3
    max_sentence_tokens: int = 256
    """Pairs with a longer side are left out."""

    max_steps: int = 100_000
    """Updates of the weights."""
    batch_tokens: int = 8192
    accumulated_batches: int = 1
    """Batches of one update."""
    schedule: Schedule = "inverse-square-root"
    learning_rate: float = 1e-3
    """The highest, at the end of the warm-up."""
    warmup_steps: int = 1000
    label_smoothing: float = 0.1
    dropout: float = 0.1
    weight_decay: float = 0.0
    max_gradient_norm: float = 1.0
    precision: Precision = "float32"
    device: str = "cpu"
    seed: int = 1

    log_every: int = 50
    snapshot_every: int = 500
    averaged_snapshots: int = 5
    """The checkpoint is the mean of so many last snapshots."""
    validate_every: int = 1000
    """A multiple of `snapshot_every`."""
    patience: int = 10
    """Validations without a better BLEU before the training ends; 0 never ends it."""

    def __post_init__(self) -> None:
        problems = list(_problems(self))
        if problems:
            raise ValueError("no such training: " + "; ".join(problems))

    def to_json(self) -> dict[str, object]:
        """The settings as JSON has them, by name."""
        values: dict[str, object] = json.loads(json.dumps(asdict(self)))
        return values

    def differences(self, earlier: dict[str, object]) -> list[str]:
        """What differs from the settings of an earlier run, of those that its weights depend on so far."""
        now = self.to_json()
        free = {"patience", "device"}
        if self.schedule == "inverse-square-root":
            free.add("max_steps")  # a cosine depends on it from the start
        return [
            f"{field.name} was {earlier.get(field.name)!r} and is {now[field.name]!r}"
            for field in fields(self)
            if field.name not in free and earlier.get(field.name) != now[field.name]
        ]


def _problems(settings: TrainingSettings) -> Iterator[str]:
    if not settings.data:
        yield "data is empty, there must be parallel text"
    for file in settings.data:
        if file.share <= 0:
            yield f"the share of {file.path} is {file.share}, it must be more than 0"
    if settings.validation is not None and realpath(settings.validation) in {realpath(f.path) for f in settings.data}:
        yield f"{settings.validation} is both trained and measured on: a model knows what it was trained on"
    at_least_one = (
        "max_validation_pairs max_sentence_tokens max_steps batch_tokens accumulated_batches log_every "
        "snapshot_every averaged_snapshots validate_every"
    )
    for name in at_least_one.split():
        if getattr(settings, name) < 1:
            yield f"{name} is {getattr(settings, name)}, it must be at least 1"
    for name in ("warmup_steps", "patience"):
        if getattr(settings, name) < 0:
            yield f"{name} is {getattr(settings, name)}, it must be at least 0"
    for name in ("label_smoothing", "dropout"):
        if not 0 <= getattr(settings, name) < 1:
            yield f"{name} is {getattr(settings, name)}, it must be at least 0 and less than 1"
    if settings.snapshot_every > 0 and settings.validate_every % settings.snapshot_every:
        yield f"validate_every is {settings.validate_every}, no multiple of snapshot_every {settings.snapshot_every}"
    if settings.learning_rate <= 0:
        yield f"learning_rate is {settings.learning_rate}, it must be more than 0"
    if settings.max_gradient_norm <= 0:
        yield f"max_gradient_norm is {settings.max_gradient_norm}, it must be more than 0"
