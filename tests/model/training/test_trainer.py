"""Real trainings, of a few thousand weights and a few seconds."""

import json
from pathlib import Path

import pytest
import torch

from model.checkpoints.weights import build_model
from model.families.registry import read_checkpoint
from model.training.settings import DataFile
from model.training.trainer import Progress, Trainer
from model.training.vocabulary import read_vocabulary
from tests.model.training.toy_runs import no_report, stop_after, train, without_times
from tests.model.training.toy_text import toy_settings


def test_a_model_learns_to_reverse_words(data: Path, unseen: Path, tmp_path: Path) -> None:
    settings = toy_settings(
        data,
        validation=str(unseen),
        d_model=64,
        num_heads=4,
        feed_forward_width=128,
        dropout=0.0,
        batch_tokens=600,
        learning_rate=3e-3,
        max_steps=300,
        warmup_steps=50,
        schedule="cosine",
        snapshot_every=100,
        validate_every=100,
        averaged_snapshots=1,
    )
    trainer = train(settings, tmp_path / "run")
    first, *_, last = [entry for entry in trainer.run_folder.log() if "validation_bleu" in entry]
    assert last["validation_bleu"] > 75 > first["validation_bleu"]
    assert last["validation_loss"] < 0.4 < first["validation_loss"]
    assert trainer.run_folder.plot_file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("stopped_after", [4, 10])
def test_an_interrupted_run_ends_bit_for_bit_where_an_uninterrupted_one_does(
    stopped_after: int, data: Path, unseen: Path, tmp_path: Path
) -> None:
    # Dropout draws from the generator, and an epoch has fewer batches than the run.
    settings = toy_settings(
        data,
        validation=str(unseen),
        dropout=0.3,
        accumulated_batches=2,
        batch_tokens=1500,
        copied_pairs=0.1,
        noisy_pairs=0.2,
        joined_pairs=0.1,
        short_pairs=1.0,
        subword_dropout=0.1,
        split_digits=True,
    )
    whole = train(settings, tmp_path / "whole")
    assert whole.position.epoch > 0
    stopped = train(settings, tmp_path / "stopped", stop_after(stopped_after))
    assert stopped.position.step == stopped_after
    torch.rand(7)
    resumed = train(settings, tmp_path / "stopped")
    for ours, theirs in zip(resumed.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert resumed.position == whole.position
    assert without_times(resumed) == without_times(whole)
    for file in sorted(whole.run_folder.checkpoint.iterdir()):
        assert (resumed.run_folder.checkpoint / file.name).read_bytes() == file.read_bytes()


def test_a_killed_run_goes_on_from_its_last_state(data: Path, tmp_path: Path) -> None:
    settings = toy_settings(data, dropout=0.3, log_every=1)
    whole = train(settings, tmp_path / "whole")

    def kill(progress: Progress) -> None:
        if progress.step == 8:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        Trainer(settings, tmp_path / "killed").run(kill)
    resumed = Trainer(settings, tmp_path / "killed")
    assert resumed.position.step == 6
    assert [entry["step"] for entry in resumed.run_folder.log()] == [1, 2, 3, 4, 5, 6]
    assert resumed.run(no_report)
    assert without_times(resumed) == without_times(whole)
    for ours, theirs in zip(resumed.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_a_run_that_is_killed_before_its_first_state_begins_anew_with_its_log(data: Path, tmp_path: Path) -> None:
    settings = toy_settings(data, dropout=0.3, log_every=1)
    whole = train(settings, tmp_path / "whole")

    def kill(progress: Progress) -> None:
        if progress.step == 2:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        Trainer(settings, tmp_path / "killed").run(kill)
    assert without_times(train(settings, tmp_path / "killed")) == without_times(whole)


@pytest.mark.parametrize("killed_after", [2, 8])
def test_a_line_of_the_log_that_was_cut_short_is_no_obstacle(killed_after: int, data: Path, tmp_path: Path) -> None:
    settings = toy_settings(data, log_every=1)
    run = tmp_path / "run"

    def kill(progress: Progress) -> None:
        if progress.step == killed_after:
            with (run / "log.jsonl").open("a", encoding="utf-8") as lines:
                lines.write('{"step": 9, "lo')
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        Trainer(settings, run).run(kill)
    assert [entry["step"] for entry in train(settings, run).run_folder.log()] == list(range(1, 13))


def test_gradients_that_are_not_finite_end_the_run_before_the_update(data: Path, tmp_path: Path) -> None:
    settings = toy_settings(data, dropout=0.3)
    whole = train(settings, tmp_path / "whole")
    trainer = Trainer(settings, tmp_path / "run")

    def damage(progress: Progress) -> None:
        if progress.step == 4:
            with torch.no_grad():
                trainer.model.decoder.embedding.weight.fill_(3e38)

    with pytest.raises(ValueError, match=r"diverged at update 5, the norm of the gradients is nan; .*--learning-rate"):
        trainer.run(damage)
    assert all(parameter.isfinite().all() for parameter in trainer.model.parameters())
    resumed = Trainer(settings, tmp_path / "run")
    assert resumed.position.step == 3
    assert resumed.run(no_report)
    for ours, theirs in zip(resumed.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize(
    ("learning_rate", "is_validated", "reason"),
    [(1e39, False, "weights are not finite"), (1e30, True, "the loss of validation is nan")],
)
def test_an_update_that_leaves_no_finite_numbers_is_not_saved(
    learning_rate: float, is_validated: bool, reason: str, data: Path, unseen: Path, tmp_path: Path
) -> None:
    settings = toy_settings(
        data,
        learning_rate=learning_rate,
        validation=str(unseen) if is_validated else None,
        max_steps=1,
        warmup_steps=0,
    )
    with pytest.raises(ValueError, match=f"diverged at update 1, {reason}"):
        train(settings, tmp_path / "run")
    assert not (tmp_path / "run" / "state.pt").exists()
    assert not (tmp_path / "run" / "en-de" / "model.safetensors").exists()


def test_two_accumulated_batches_are_one_update_from_both(data: Path, tmp_path: Path) -> None:
    trainers = [
        Trainer(toy_settings(data, dropout=0.0, batch_tokens=tokens, learning_rate=1e-3), tmp_path / str(tokens))
        for tokens in (600, 100_000)
    ]
    few, all_at_once = trainers
    chosen = next(all_at_once.batches())
    few.update([chosen[:100], chosen[100:]])
    all_at_once.update([chosen])
    # Of the gradients, not the weights: Adam's first update is the sign of a gradient, however small that is.
    for ours, theirs in zip(few.model.parameters(), all_at_once.model.parameters(), strict=True):
        gradients = (trainer.optimizer.state[p]["exp_avg"] for trainer, p in ((few, ours), (all_at_once, theirs)))
        torch.testing.assert_close(*gradients, atol=1e-6, rtol=1e-4)


def test_the_checkpoint_is_the_mean_of_the_last_snapshots(data: Path, tmp_path: Path) -> None:
    trainer = Trainer(toy_settings(data), tmp_path / "run")
    seen: dict[int, torch.Tensor] = {}

    def remember(progress: Progress) -> None:
        seen[progress.step] = trainer.model.encoder.embedding.weight.detach().clone()

    assert trainer.run(remember)
    written = build_model(read_checkpoint(trainer.run_folder.checkpoint)).encoder.embedding.weight
    torch.testing.assert_close(written.detach(), (seen[9] + seen[12]) / 2)
    assert len(trainer.run_folder.snapshots()) == 2


def test_training_ends_early_where_nothing_gets_better_and_keeps_the_best(
    data: Path, unseen: Path, tmp_path: Path
) -> None:
    settings = toy_settings(data, validation=str(unseen), learning_rate=1e-9, patience=2, max_steps=100)
    trainer = train(settings, tmp_path / "run")
    assert (trainer.position.best_step, trainer.position.step) == (3, 9)
    written = (trainer.run_folder.checkpoint / "model.safetensors").stat().st_mtime_ns
    assert written <= (tmp_path / "run" / "snapshots" / "00000006.safetensors").stat().st_mtime_ns


def test_a_run_can_begin_with_another_model_in_the_other_direction(data: Path, tmp_path: Path) -> None:
    first = train(toy_settings(data), tmp_path / "first")
    settings = toy_settings(
        data,
        initial=str(first.run_folder.checkpoint),
        source_language="de",
        target_language="en",
        swap_columns=True,
        learning_rate=1e-12,
    )
    second = train(settings, tmp_path / "second")
    found = read_checkpoint(second.run_folder.checkpoint)
    assert (found.languages.source, found.languages.target) == (("de",), ("en",))
    initial = build_model(read_checkpoint(first.run_folder.checkpoint))
    torch.testing.assert_close(build_model(found).state_dict(), initial.state_dict(), atol=1e-6, rtol=0)
    assert read_vocabulary(second.run_folder.checkpoint).numbers == read_vocabulary(first.run_folder.checkpoint).numbers


def test_padding_keeps_the_embedding_of_zero_that_starts_every_answer(data: Path, tmp_path: Path) -> None:
    model = train(toy_settings(data, weight_decay=0.1), tmp_path / "run").model
    assert not model.encoder.embedding.weight[model.config.pad_token_id].any()


def test_pairs_that_are_too_long_are_left_out_and_counted(data: Path, tmp_path: Path) -> None:
    long = tmp_path / "long.tsv"
    long.write_text("ant\tant\n" + " ".join(["bee"] * 100) + "\tbee\n", "utf-8")
    settings = toy_settings(data, data=(DataFile(str(data)), DataFile(str(long))), max_steps=1)
    trainer = Trainer(settings, tmp_path / "run")
    assert (trainer.corpus.sizes, trainer.corpus.num_left_out) == ((900, 1), 1)


def test_bfloat16_trains_much_like_float32(data: Path, tmp_path: Path) -> None:
    losses = {}
    for precision in ("float32", "bfloat16"):
        trainer = train(toy_settings(data, precision=precision, dropout=0.0, max_steps=30), tmp_path / precision)
        losses[precision] = trainer.run_folder.log()[-1]["loss"]
        assert all(parameter.dtype == torch.float32 for parameter in trainer.model.parameters())
    assert losses["bfloat16"] == pytest.approx(losses["float32"], rel=0.02)
    assert losses["bfloat16"] != losses["float32"]


def test_every_line_of_the_log_is_json_with_its_step(data: Path, tmp_path: Path) -> None:
    trainer = train(toy_settings(data), tmp_path / "run")
    lines = [json.loads(line) for line in trainer.run_folder.log_file.read_text("utf-8").splitlines()]
    assert [line["step"] for line in lines] == [3, 6, 9, 12]
    assert all(0 < line["learning_rate"] <= 1e-3 and line["loss"] > 0 for line in lines)
