"""Real trainings, of a few thousand weights and a few seconds."""

import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from model.checkpoints.weights import build_model
from model.families.registry import read_checkpoint
from model.training.trainer import Progress, SubwordSplitter, Trainer, average_weights, learning_rate
from model.training.vocabulary import JointVocabulary, best_split, read_vocabulary, train_vocabulary
from tests.model.training.toy_runs import WORDS, no_report, stop_after, toy_settings, train, without_times

TEXT = " ".join(WORDS)


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


def test_an_interrupted_run_ends_bit_for_bit_where_an_uninterrupted_one_does(
    data: Path, unseen: Path, tmp_path: Path
) -> None:
    # Dropout draws from the generator, and an epoch has fewer batches than the run.
    settings = toy_settings(
        data,
        validation=str(unseen),
        dropout=0.3,
        accumulated_batches=2,
        batch_tokens=900,
        copied_pairs=0.1,
        noisy_pairs=0.2,
        joined_pairs=0.1,
        short_pairs=1.0,
        subword_dropout=0.1,
        split_digits=True,
    )
    whole = train(settings, tmp_path / "whole")
    assert whole.position.epoch > 0
    stopped = train(settings, tmp_path / "stopped", stop_after(10))
    assert stopped.position.step == 10
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


def test_a_student_with_a_recurrent_decoder_is_written_and_read_back(data: Path, tmp_path: Path) -> None:
    settings = toy_settings(data, decoder="ssru")
    trainer = train(settings, tmp_path / "run")
    config = trainer.model.config
    assert config.has_recurrent_decoder
    checkpoint = read_checkpoint(trainer.run_folder.checkpoint)
    assert (checkpoint.languages.source, checkpoint.languages.target) == (("en",), ("de",))
    found = build_model(checkpoint)
    source = torch.tensor([[5, 9, 7, config.eos_token_id]])
    inputs = torch.tensor([[config.decoder_start_token_id, 6, 8]])
    mask = torch.ones_like(source, dtype=torch.bool)
    with torch.no_grad():
        expected, logits = trainer._averaged()(source, mask, inputs), found(source, mask, inputs)
    # The padding, which is never generated, has no probability in Marian's format.
    torch.testing.assert_close(logits[..., :-1], expected[..., :-1], atol=1e-5, rtol=0)
    again = toy_settings(data, initial=str(trainer.run_folder.checkpoint), max_steps=1)
    assert Trainer(again, tmp_path / "again").model.config.has_recurrent_decoder


@pytest.mark.parametrize("step", [4000, 4001, 16_000, 99_999])
def test_the_inverse_square_root_is_that_of_the_paper(step: int) -> None:
    # Vaswani et al. 2017, section 5.3; d_model is chosen so that both have the same highest rate.
    highest, warmup = 7e-4, 4000
    scale = highest * math.sqrt(warmup)
    paper = scale * min(step**-0.5, step * warmup**-1.5)
    assert learning_rate("inverse-square-root", step, highest, warmup, 100_000) == pytest.approx(paper)


@pytest.fixture(scope="module")
def vocabulary() -> JointVocabulary:
    return train_vocabulary([f"{first} {second}" for first in WORDS for second in WORDS], 300)


def test_split_tokens_are_more_and_have_the_same_text(vocabulary: JointVocabulary) -> None:
    (tokens,) = vocabulary.encode([TEXT])
    split = SubwordSplitter(vocabulary, 1.0).for_batch((1, 2), 256)
    found = split(tokens)
    assert len(found) > len(tokens)
    assert found[-1] == vocabulary.end
    assert vocabulary.decode(found) == TEXT


def test_the_best_split_has_the_fewest_pieces_and_of_those_the_most_probable() -> None:
    scores = {"abcd": -1.0, "ab": -2.0, "cd": -2.0, "abc": -9.0, "a": -1.0, "b": -1.0, "c": -1.0, "d": -1.0}
    assert best_split("abcd", scores) == ["ab", "cd"]
    assert best_split("ab", scores) == ["a", "b"]
    assert best_split("x", scores) == []


@pytest.mark.parametrize("split_before", [True, False])
def test_digits_can_be_tokens_of_their_own(split_before: bool) -> None:
    texts = [f"year 1987 {number}" for number in range(1900, 2030)] * 3
    vocabulary = train_vocabulary(texts, 275, split_digits=split_before)
    split = vocabulary if split_before else vocabulary.with_split_digits()
    assert split.numbers == vocabulary.numbers
    (tokens,) = split.encode(["year 1987 2024"])
    pieces = {number: piece for piece, number in vocabulary.numbers.items()}
    assert all(sum(map(str.isdigit, pieces[token])) <= 1 for token in tokens.tolist())
    assert split.decode(tokens) == "year 1987 2024"
    if not split_before:
        assert len(vocabulary.encode(["year 1987 2024"])[0]) < len(tokens)


def test_the_average_is_the_mean_of_each_weight(tmp_path: Path) -> None:
    snapshots = [{"a": torch.randn(3, 4), "b": torch.randn(5)} for _ in range(3)]
    for number, weights in enumerate(snapshots):
        save_file(weights, tmp_path / f"{number}.safetensors")
    averaged = average_weights(sorted(tmp_path.iterdir()))
    assert set(averaged) == {"a", "b"}
    for name, tensor in averaged.items():
        assert tensor.dtype == torch.float32
        torch.testing.assert_close(tensor, torch.stack([weights[name] for weights in snapshots]).mean(dim=0))
