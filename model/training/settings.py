"""Settings of a training run; equal settings produce equal weights."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from os.path import realpath
from typing import Literal

from model.training.augmentation import AugmentationSettings

Schedule = Literal["inverse-square-root", "cosine"]
Precision = Literal["float32", "bfloat16"]
Decoder = Literal["self-attention", "ssru"]


@dataclass(frozen=True, slots=True)
class DataFile:
    """Parallel text and its share in an epoch: 1 is every pair once, 0.2 a fifth (a different one each epoch)."""

    path: str
    share: float = 1.0

    @classmethod
    def parse(cls, written: str) -> "DataFile":
        """Parse `FILE` or `FILE@SHARE`."""
        path, separator, share = written.rpartition("@")
        if not separator:
            return cls(written)
        try:
            return cls(path, float(share))
        except ValueError:
            return cls(written)


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """Settings of a training run. Raises ValueError with every invalid setting.

    Token counts include padding, source and target together.
    """

    data: tuple[DataFile, ...]
    source_language: str
    target_language: str
    swap_columns: bool = False
    """Read the source from the second column of the files."""
    validation: str | None = None
    """Parallel text for validation; not used for training."""
    max_validation_pairs: int = 500
    initial: str | None = None
    """Folder of a checkpoint to start from, with its vocabulary and sizes; by default random weights."""

    vocab_size: int = 8000
    d_model: int = 256
    num_heads: int = 4
    feed_forward_width: int = 1024
    num_encoder_layers: int = 6
    num_decoder_layers: int = 3
    decoder: Decoder = "self-attention"
    """"ssru" replaces self-attention by a recurrent unit; the checkpoint is then in Marian's own format."""
    max_sentence_tokens: int = 256
    """Pairs with a longer side are skipped."""

    copied_pairs: float = 0.0
    """Additional pairs with items to copy, for each pair of an epoch."""
    noisy_pairs: float = 0.0
    joined_pairs: float = 0.0
    short_pairs: float = 0.0
    """How many times pairs of at most two words a side are taken in addition."""
    subword_dropout: float = 0.0
    """Probability of splitting a token of the source."""
    split_digits: bool = False
    """Encode every digit as a token of its own."""

    max_steps: int = 100_000
    """Number of updates."""
    batch_tokens: int = 8192
    accumulated_batches: int = 1
    """Number of batches in one update."""
    schedule: Schedule = "inverse-square-root"
    learning_rate: float = 1e-3
    """Highest learning rate, at the end of the warm-up."""
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
    """Number of last snapshots whose mean is the checkpoint."""
    validate_every: int = 1000
    """Updates between validations: a multiple of `snapshot_every`."""
    patience: int = 10
    """Validations without a better BLEU after which training ends; 0 disables this."""

    def __post_init__(self) -> None:
        problems = list(_problems(self))
        if problems:
            raise ValueError("invalid settings: " + "; ".join(problems))

    @property
    def languages(self) -> tuple[str, str]:
        """The languages of source and target."""
        return self.source_language, self.target_language

    @property
    def augmentation(self) -> AugmentationSettings:
        """The additional pairs of the corpus."""
        return AugmentationSettings(self.copied_pairs, self.noisy_pairs, self.joined_pairs, self.short_pairs)

    def to_json(self) -> dict[str, object]:
        """Return the settings as JSON values by name."""
        values: dict[str, object] = json.loads(json.dumps(asdict(self)))
        return values

    def differences(self, earlier: dict[str, object]) -> list[str]:
        """Return the differences from an earlier run in settings that influence the weights."""
        now = self.to_json()
        free = {"patience", "device"}
        if self.schedule == "inverse-square-root":
            free.add("max_steps")  # a cosine schedule depends on it from the first update
        return [
            f"{name} was {value!r} and is {now.get(name)!r}"
            for name, value in earlier.items()
            if name not in free and value != now.get(name)
        ]


def _problems(settings: TrainingSettings) -> Iterator[str]:
    if not settings.data:
        yield "`data` must contain at least one file"
    for file in settings.data:
        if file.share <= 0:
            yield f"the share of {file.path} must be more than 0. Given: {file.share}"
    if settings.validation is not None and realpath(settings.validation) in {realpath(f.path) for f in settings.data}:
        yield f"{settings.validation} must not be both training and validation data"
    at_least_one = (
        "max_validation_pairs max_sentence_tokens max_steps batch_tokens accumulated_batches log_every "
        "snapshot_every averaged_snapshots validate_every"
    )
    for name in at_least_one.split():
        if getattr(settings, name) < 1:
            yield f"`{name}` must be at least 1. Given: {getattr(settings, name)}"
    for name in ("warmup_steps", "patience"):
        if getattr(settings, name) < 0:
            yield f"`{name}` must be at least 0. Given: {getattr(settings, name)}"
    for name in ("copied_pairs", "noisy_pairs", "joined_pairs", "short_pairs"):
        if getattr(settings, name) < 0:
            yield f"`{name}` must be at least 0. Given: {getattr(settings, name)}"
    for name in ("label_smoothing", "dropout", "subword_dropout"):
        if not 0 <= getattr(settings, name) < 1:
            yield f"`{name}` must be at least 0 and less than 1. Given: {getattr(settings, name)}"
    if settings.snapshot_every > 0 and settings.validate_every % settings.snapshot_every:
        yield (
            f"`validate_every` must be a multiple of `snapshot_every` {settings.snapshot_every}. "
            f"Given: {settings.validate_every}"
        )
    if settings.learning_rate <= 0:
        yield f"`learning_rate` must be more than 0. Given: {settings.learning_rate}"
    if settings.max_gradient_norm <= 0:
        yield f"`max_gradient_norm` must be more than 0. Given: {settings.max_gradient_norm}"
