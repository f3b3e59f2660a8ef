"""Settings of a training run; equal settings produce equal weights."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from os.path import realpath
from typing import Any, Literal

from model.training.augmentation import AugmentationSettings

Schedule = Literal["inverse-square-root", "cosine"]
Precision = Literal["float32", "bfloat16"]
Decoder = Literal["self-attention", "ssru"]


def _flag(panel: str, default: object, help_text: str) -> Any:  # noqa: ANN401 - the type of the default
    """Return a field that is a flag of `kvasir train` in a panel of its help."""
    return field(default=default, metadata={"panel": panel, "help": help_text})


_sizes, _pairs, _updates, _measuring = (
    partial(_flag, panel) for panel in ("A new model", "Additional pairs", "Updates", "Averaging and measuring")
)


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
    initial: str | None = None
    """Folder of a checkpoint to start from, with its vocabulary and sizes; by default random weights."""
    precision: Precision = "float32"
    device: str = "cpu"
    seed: int = 1

    vocab_size: int = _sizes(8000, "Tokens of the joint vocabulary.")
    d_model: int = _sizes(256, "Width.")
    num_heads: int = _sizes(4, "Attention heads.")
    feed_forward_width: int = _sizes(1024, "Width inside feed-forward layers.")
    num_encoder_layers: int = _sizes(6, "Layers.")
    num_decoder_layers: int = _sizes(3, "Layers.")
    decoder: Decoder = _sizes(  # noqa: RUF009 - a field
        "self-attention", "ssru: a recurrent unit instead of self-attention, for fast students."
    )
    """The checkpoint of a model with "ssru" is in Marian's own format."""
    max_sentence_tokens: int = _sizes(256, "Pairs with a longer side are skipped.")

    copied_pairs: float = _pairs(
        0.0, "Pairs with numbers, names, dates and addresses to copy, for each pair of an epoch."
    )
    noisy_pairs: float = _pairs(
        0.0, "Pairs in capitals, in lower case, without full stop or with a typo, for each pair of an epoch."
    )
    joined_pairs: float = _pairs(0.0, "Pairs of two to four sentences, for each pair of an epoch.")
    short_pairs: float = _pairs(0.0, "How often pairs of one or two words are taken in addition.")
    subword_dropout: float = _pairs(0.0, "Probability of splitting a token of the source.")
    split_digits: bool = _pairs(False, "Encode each digit as a token of its own.")

    max_steps: int = _updates(100_000, "Number of updates.")
    batch_tokens: int = _updates(8192, "Tokens of a batch, source, target and padding.")
    accumulated_batches: int = _updates(1, "Batches of an update.")
    schedule: Schedule = _updates("inverse-square-root", "Decay of the learning rate.")  # noqa: RUF009 - a field
    learning_rate: float = _updates(1e-3, "Highest learning rate.")
    warmup_steps: int = _updates(1000, "Updates until the highest learning rate.")
    label_smoothing: float = _updates(0.1, "Probability shared by all tokens.")
    dropout: float = _updates(0.1, "Dropout of sub-layers and embeddings.")
    weight_decay: float = _updates(0.0, "Weight decay of AdamW.")
    max_gradient_norm: float = _updates(1.0, "Largest norm of the gradients; larger ones are scaled down.")

    log_every: int = _measuring(50, "Updates between lines of the log.")
    snapshot_every: int = _measuring(500, "Updates between snapshots.")
    averaged_snapshots: int = _measuring(5, "Number of snapshots whose mean is the checkpoint.")
    validate_every: int = _measuring(1000, "Updates between validations.")
    """A multiple of `snapshot_every`."""
    max_validation_pairs: int = _measuring(500, "Pairs of the validation file.")
    patience: int = _measuring(10, "Validations without a better BLEU until training ends; 0 disables this.")

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
