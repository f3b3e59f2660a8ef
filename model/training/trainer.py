"""The training loop: updates, and at fixed steps log, snapshot and validation; what a run starts from; its parts."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from safetensors.torch import load_file
from torch import Tensor, nn

from model.checkpoints.hugging_face_files import find_checkpoint
from model.checkpoints.weights import build_model
from model.config import TransformerConfig
from model.families.marian.hugging_face import require_marian, write_marian
from model.families.marian.npz_writing import require_marian_npz, write_student
from model.families.registry import read_checkpoint
from model.training.augmentation import Augmentation
from model.training.corpus import Batch, Corpus, CorpusRecord, Indices, epoch_indices, read_corpus, token_batches
from model.training.parallel_text import read_pairs
from model.training.run_folder import LogEntry, RunFolder, State
from model.training.settings import Schedule, TrainingSettings
from model.training.validation import Scores, Validation, label_loss, read_validation
from model.training.vocabulary import JointVocabulary, TokenIds, read_vocabulary, train_vocabulary
from model.transformer import Transformer


@dataclass(slots=True)
class Position:
    """Position of a run. `loss`, `num_labels` and `gradient_norm` are sums since the last log line."""

    step: int = 0
    epoch: int = 0
    next_batch: int = 0
    best_bleu: float = -1.0
    best_step: int = 0
    validations_since_best: int = 0
    loss: float = 0.0
    num_labels: int = 0
    gradient_norm: float = 0.0


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress report of a run. `loss` is per label, `scores` are the last ones."""

    step: int
    max_steps: int
    epoch: int
    loss: float
    scores: Scores | None


class Trainer:
    """One run in its folder. A new instance with the same settings resumes the run."""

    def __init__(self, settings: TrainingSettings, folder: Path) -> None:
        self.settings = settings
        self.run_folder = RunFolder(folder, f"{settings.source_language}-{settings.target_language}")
        self.run_folder.require_same(settings)
        self.device = torch.device(settings.device)
        vocabulary = _prepare_vocabulary(settings, self.run_folder)
        self.model: Transformer = _prepare_model(settings, vocabulary).to(self.device)
        start = self.model.config.decoder_start_token_id
        self.corpus = _prepare_corpus(settings, vocabulary, start)
        self._splitter = SubwordSplitter(vocabulary, settings.subword_dropout) if settings.subword_dropout else None
        self._corpus_record = self.corpus.record()
        self.validation: Validation | None = None
        if settings.validation is not None:
            self.validation = read_validation(
                Path(settings.validation),
                vocabulary,
                start,
                settings.max_validation_pairs,
                settings.languages,
                swap_columns=settings.swap_columns,
            )
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=settings.learning_rate,
            betas=(0.9, 0.98),
            eps=1e-9,
            weight_decay=settings.weight_decay,
            fused=True,
        )
        self.position = Position()
        self.scores: Scores | None = None
        state = self.run_folder.load_state()
        if state is not None:
            self._require_same_corpus(state["corpus"])
            self._require_same_validation(state.get("validation_sha256"))
        self.run_folder.begin(settings, vocabulary)
        self._resume(state)

    def run(self, report: Callable[[Progress], None], is_stopped: Callable[[], bool] = lambda: False) -> bool:
        """Train until `max_steps` or until validation no longer improves, and write the checkpoint.

        Returns True when training is complete, and False after `is_stopped` returned True; the next run continues from
        there. Raises ValueError if weights or gradients are not finite; they are not saved.
        """
        position, settings = self.position, self.settings
        batches = self.batches()
        logged_at = time.monotonic()
        while not self._is_done():
            if is_stopped():
                self._require_finite_weights()
                self._save_state()
                return False
            loss = self.update([next(batches) for _ in range(settings.accumulated_batches)])
            if position.step % settings.log_every == 0:
                self._log(time.monotonic() - logged_at)
                logged_at = time.monotonic()
            if self._is_due(settings.snapshot_every):
                self._require_finite_weights()
                weights = dict(self.model.named_parameters())
                self.run_folder.save_snapshot(position.step, weights, settings.averaged_snapshots)
                if self._is_due(settings.validate_every):
                    self._measure()
                self._save_state()
            report(Progress(position.step, settings.max_steps, position.epoch, loss, self.scores))
        return True

    def _is_due(self, every: int) -> bool:
        return self.position.step % every == 0 or self.position.step >= self.settings.max_steps

    def _is_done(self) -> bool:
        settings, position = self.settings, self.position
        is_at_end = position.step >= settings.max_steps
        return is_at_end or 0 < settings.patience <= position.validations_since_best

    def batches(self) -> Iterator[Indices]:
        """Yield the pairs of batches without end, from the position on, and advance it."""
        settings, corpus, position = self.settings, self.corpus, self.position
        lengths = corpus.sources.lengths, corpus.targets.lengths
        while True:
            indices = epoch_indices(corpus.sizes, corpus.shares, settings.seed, position.epoch)
            batches = token_batches(indices, *lengths, settings.batch_tokens, settings.seed, position.epoch)
            for batch in batches[position.next_batch :]:
                position.next_batch += 1
                yield batch
            position.epoch, position.next_batch = position.epoch + 1, 0

    def update(self, chosen: Sequence[Indices]) -> float:
        """One update from these batches; returns the loss per label.

        Raises ValueError before the weights change if the gradients are not finite.
        """
        settings, position = self.settings, self.position
        batches = [self._batch(indices, place) for place, indices in enumerate(chosen)]
        num_labels = sum(batch.num_labels for batch in batches)
        self.model.train()
        loss = 0.0
        for batch in batches:
            # Every label has the same weight in all batches of an update.
            part = self._loss(batch) / num_labels
            torch.autograd.backward(part)
            loss += float(part.detach())
        # The padding token starts every output of a Marian model; its embedding must remain zero.
        for weight in {self.model.encoder.embedding.weight, self.model.output_projection.weight}:
            assert weight.grad is not None
            weight.grad[self.model.config.pad_token_id].zero_()
        norm = float(nn.utils.clip_grad_norm_(self.model.parameters(), settings.max_gradient_norm))
        position.step += 1
        # Such an update turns all weights into NaN. Skipping it does not help: no precision scales the loss.
        if not math.isfinite(norm):
            raise self._diverged(f"the norm of the gradients is {norm}")
        rate = learning_rate(
            settings.schedule, position.step, settings.learning_rate, settings.warmup_steps, settings.max_steps
        )
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        position.loss += loss * num_labels
        position.num_labels += num_labels
        position.gradient_norm += norm
        return loss

    def _batch(self, indices: Indices, place: int) -> Batch:
        if self._splitter is None:
            return self.corpus.batch(indices, self.device)
        seed = self.settings.seed, self.position.step, place, 2
        return self.corpus.batch(
            indices, self.device, self._splitter.for_batch(seed, self.settings.max_sentence_tokens)
        )

    def _require_finite_weights(self) -> None:
        if not all(bool(weight.isfinite().all()) for weight in self.model.parameters()):
            raise self._diverged("weights are not finite")

    def _diverged(self, reason: str) -> ValueError:
        return ValueError(
            f"training diverged at update {self.position.step}, {reason}; use a lower --learning-rate or a longer "
            f"--warmup-steps in another folder ({self.run_folder.path} keeps the earlier snapshots)"
        )

    def _loss(self, batch: Batch) -> torch.Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.settings.precision == "bfloat16"):
            logits = self.model(batch.source, batch.source_mask, batch.target_inputs)
        return label_loss(logits, batch.labels, self.corpus.padding, self.settings.label_smoothing)

    def _log(self, seconds: float) -> None:
        position = self.position
        self.run_folder.append_log(
            {
                "step": position.step,
                "epoch": position.epoch,
                "loss": position.loss / position.num_labels,
                "learning_rate": self.optimizer.param_groups[0]["lr"],
                "gradient_norm": position.gradient_norm / self.settings.log_every,
                "labels": position.num_labels,
                "seconds": round(seconds, 1),
                "labels_per_second": round(position.num_labels / seconds, 1),
                "time": round(time.time(), 1),
            }
        )
        position.loss, position.num_labels, position.gradient_norm = 0.0, 0, 0.0

    def _measure(self) -> None:
        """Validate the mean of the last snapshots, and write it if it is the best; without validation, write it."""
        position, averaged = self.position, self._averaged()
        if self.validation is None:
            self._write_checkpoint(averaged)
            return
        scores = self.validation(averaged, self.device)
        if not math.isfinite(scores.loss):
            raise self._diverged(f"the loss of validation is {scores.loss}")
        self.scores = scores
        self.run_folder.append_log(
            {"step": position.step, **{f"validation_{name}": value for name, value in asdict(self.scores).items()}}
        )
        if self.scores.bleu > position.best_bleu:
            position.best_bleu, position.best_step = self.scores.bleu, position.step
            position.validations_since_best = 0
            self._write_checkpoint(averaged)
        else:
            position.validations_since_best += 1
        draw_losses(self.run_folder.log(), self.run_folder.plot_file)

    def _averaged(self) -> Transformer:
        averaged = Transformer(self.model.config)
        weights = average_weights(self.run_folder.snapshots())
        with torch.no_grad():
            for name, parameter in averaged.named_parameters():
                parameter.copy_(weights[name])
        return averaged.to(self.device).eval()

    def _write_checkpoint(self, model: Transformer) -> None:
        settings = self.settings
        write = write_student if model.config.has_recurrent_decoder else write_marian
        write(model, self.run_folder.checkpoint, settings.source_language, settings.target_language)

    def _save_state(self) -> None:
        state: State = {
            "position": asdict(self.position),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
            "device_random": torch.cuda.get_rng_state() if self.device.type == "cuda" else None,
            "corpus": self._corpus_record,
        }
        if self.validation is not None:
            state["validation_sha256"] = self.validation.sha256
        self.run_folder.save_state(state)

    def _require_same_corpus(self, earlier: CorpusRecord) -> None:
        """Raise ValueError if the data differs from the saved state, whose position refers to it."""
        now = self._corpus_record
        if earlier == now:
            return
        # Additional pairs have a size and no file.
        sizes = zip(self.settings.data, earlier["sizes"], now["sizes"], strict=False)
        changed = [f"{file.path} had {then} pairs and has {size}" for file, then, size in sizes if then != size]
        how = "; ".join(changed) or "equal numbers of pairs, different tokens"
        raise ValueError(f"{self.run_folder.path} was trained on other data ({how}); restore it or use another folder")

    def _require_same_validation(self, earlier: str | None) -> None:
        """Raise ValueError if the validation pairs differ from those of the saved best BLEU."""
        if self.validation is not None and earlier not in (None, self.validation.sha256):
            raise ValueError(
                f"{self.run_folder.path} was validated on other pairs than {self.settings.validation} contains; "
                "restore them or use another folder"
            )

    def _resume(self, state: State | None) -> None:
        if state is None:
            self.run_folder.forget_after(0)
            return
        for name, value in state["position"].items():
            setattr(self.position, name, value)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        if self.device.type == "cuda" and state["device_random"] is not None:
            torch.cuda.set_rng_state(state["device_random"])
        self.run_folder.forget_after(self.position.step)


def _prepare_vocabulary(settings: TrainingSettings, run: RunFolder) -> JointVocabulary:
    """Return the vocabulary of a resumed run's checkpoint, else of `settings.initial`, else a new one.

    Without a saved state, the folder's checkpoint is ignored: it can be from other text.
    """
    if run.has_state():
        return read_vocabulary(run.checkpoint, settings.target_language)
    if settings.initial is not None:
        vocabulary = read_vocabulary(find_checkpoint(settings.initial).path, settings.target_language)
        return vocabulary.with_split_digits() if settings.split_digits else vocabulary
    return train_vocabulary(_all_texts(settings), settings.vocab_size, split_digits=settings.split_digits)


def _prepare_model(settings: TrainingSettings, vocabulary: JointVocabulary) -> Transformer:
    """Set the seed and return the model of `settings.initial`, or a random one of the sizes in the settings."""
    torch.manual_seed(settings.seed)
    if settings.initial is not None:
        initial = read_checkpoint(settings.initial)
        if not (initial.config.tie_embeddings and initial.config.tie_output):
            raise ValueError(
                f"{settings.initial}: training requires a model with one weight for both embeddings and the output"
            )
        require = require_marian_npz if initial.config.has_recurrent_decoder else require_marian
        require(initial.config)  # before the first update, not at the first checkpoint
        return build_model(replace(initial, config=replace(initial.config, dropout=settings.dropout)))
    is_recurrent = settings.decoder == "ssru"
    return Transformer(
        TransformerConfig(
            vocab_size=len(vocabulary),
            pad_token_id=vocabulary.padding,
            eos_token_id=vocabulary.end,
            bos_token_id=vocabulary.end,
            decoder_start_token_id=vocabulary.padding,
            d_model=settings.d_model,
            num_heads=settings.num_heads,
            feed_forward_width=settings.feed_forward_width,
            num_encoder_layers=settings.num_encoder_layers,
            num_decoder_layers=settings.num_decoder_layers,
            decoder="ssru" if is_recurrent else "self_attention",
            dropout=settings.dropout,
            # As in the library that reads the checkpoint: Marian itself, or transformers.
            sinusoid_layout="halves_inclusive" if is_recurrent else "halves",
            layer_norm_epsilon=1e-6 if is_recurrent else 1e-5,
            output_bias=True,
            max_source_tokens=settings.max_sentence_tokens,
            max_target_tokens=settings.max_sentence_tokens,
            suppressed_token_ids=(vocabulary.padding,),
            forced_eos=True,
        )
    )


def _prepare_corpus(settings: TrainingSettings, vocabulary: JointVocabulary, start: int) -> Corpus:
    """Read the pairs of all files and make the additional ones. Raises ValueError as `read_corpus` does."""
    return read_corpus(
        settings.data,
        vocabulary,
        start,
        settings.max_sentence_tokens,
        settings.languages,
        swap_columns=settings.swap_columns,
        augmentation=Augmentation(settings.augmentation, settings.languages, settings.seed),
    )


def _all_texts(settings: TrainingSettings) -> Iterator[str]:
    pairs = (read_pairs(Path(file.path), settings.languages) for file in settings.data)
    return chain.from_iterable(chain.from_iterable(pairs))


def learning_rate(schedule: Schedule, step: int, highest: float, warmup_steps: int, max_steps: int) -> float:
    """Return the learning rate of update number `step`, counted from 1.

    It rises linearly to `highest` at `warmup_steps`. After that, "inverse-square-root" is
    highest * sqrt(warmup_steps / step) (Vaswani et al. 2017, section 5.3, scaled to its peak), and "cosine" falls along
    half a wave to 0 at `max_steps` (Loshchilov and Hutter 2017, arXiv:1608.03983, without restarts).
    """
    if step < warmup_steps:
        return highest * step / warmup_steps
    if schedule == "inverse-square-root":
        return highest * math.sqrt(max(warmup_steps, 1) / step)
    progress = min((step - warmup_steps) / max(max_steps - warmup_steps, 1), 1.0)
    return highest * 0.5 * (1.0 + math.cos(math.pi * progress))


class SubwordSplitter:
    """Subword regularisation: random tokens of the source are split into smaller ones.

    It has the effect of BPE-dropout (Provilkov et al. 2020, arXiv:1910.13267) for every kind of SentencePiece model.
    Splits need no text, and depend on the given generator only, so that a resumed run gets equal batches.
    """

    def __init__(self, vocabulary: JointVocabulary, probability: float) -> None:
        self._probability = probability
        self._parts = {token: np.array(parts, dtype=np.int32) for token, parts in vocabulary.splits().items()}
        self._can_split = np.zeros(len(vocabulary), dtype=bool)
        self._can_split[list(self._parts)] = True

    def for_batch(self, seed: Sequence[int], max_tokens: int) -> Callable[[TokenIds], TokenIds]:
        """Return a function that splits the sequences of one batch. Equal seeds split equally."""
        random = np.random.default_rng(seed)
        return lambda tokens: self.split(tokens, random, max_tokens)

    def split(self, tokens: TokenIds, random: np.random.Generator, max_tokens: int) -> TokenIds:
        """Return the tokens, each split with the probability; unchanged if they would be more than `max_tokens`."""
        chosen = np.flatnonzero((random.random(len(tokens)) < self._probability) & self._can_split[tokens])
        parts: list[TokenIds] = []
        start = 0
        for index in chosen:
            parts += [tokens[start:index], self._parts[int(tokens[index])]]
            start = int(index) + 1
        found = np.concatenate([*parts, tokens[start:]])
        return found if len(found) <= max_tokens else tokens


def average_weights(snapshots: Sequence[Path]) -> dict[str, Tensor]:
    """Return each weight's mean over the snapshots (Vaswani et al. 2017, section 6.1), float32, summed in float64.

    While the learning rate is above 0, it is better than any of them.
    """
    if not snapshots:
        raise ValueError("there are no snapshots to average")
    sums: dict[str, Tensor] = {}
    for path in snapshots:
        for name, tensor in load_file(path).items():
            wide = tensor.to(torch.float64)
            sums[name] = sums[name] + wide if name in sums else wide
    return {name: (total / len(snapshots)).to(torch.float32) for name, total in sums.items()}


def draw_losses(log: Sequence[LogEntry], path: Path) -> None:
    """Write a PNG of training and validation loss over the updates, and BLEU on a second axis."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    _draw_line(axes, log, "loss", "training, smoothed labels", "#9aa5b1")
    _draw_line(axes, log, "validation_loss", "validation", "#1f4e79")
    axes.set(xlabel="updates", ylabel="loss of a token")
    axes.grid(alpha=0.3)
    right = axes.twinx()
    _draw_line(right, log, "validation_bleu", "BLEU", "#b5651d")
    right.set_ylabel("BLEU")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    figure.savefig(path, dpi=120)


def _draw_line(axes: Axes, log: Sequence[LogEntry], name: str, label: str, colour: str) -> None:
    entries = [entry for entry in log if name in entry]
    axes.plot([entry["step"] for entry in entries], [entry[name] for entry in entries], label=label, color=colour)
