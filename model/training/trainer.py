"""The training loop: updates, and at fixed steps log, snapshot and validation."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import nn

from model.families.marian.writing import write_marian
from model.training.averaging import average_weights
from model.training.batches import Indices, epoch_indices, token_batches
from model.training.corpus import Batch, CorpusRecord
from model.training.loss import label_loss
from model.training.plot import draw_losses
from model.training.preparation import prepare_corpus, prepare_model, prepare_vocabulary
from model.training.run_folder import RunFolder, State
from model.training.schedules import learning_rate
from model.training.settings import TrainingSettings
from model.training.subwords import SubwordSplitter
from model.training.validation import Scores, Validation, read_validation
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
        vocabulary = prepare_vocabulary(settings, self.run_folder)
        self.model: Transformer = prepare_model(settings, vocabulary).to(self.device)
        start = self.model.config.decoder_start_token_id
        self.corpus = prepare_corpus(settings, vocabulary, start)
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
            self._require_same_corpus(state.get("corpus"))
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
        write_marian(model, self.run_folder.checkpoint, settings.source_language, settings.target_language)

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

    def _require_same_corpus(self, earlier: CorpusRecord | None) -> None:
        """Raise ValueError if the data differs from the saved state, whose position refers to it."""
        now = self._corpus_record
        if earlier is None or earlier == now:
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
