import math
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner, Result

from kvasir_commands import app
from model.training.filtering import kept_pairs, pair_losses
from model.training.trainer import Trainer
from tests.model.training.toy_runs import toy_settings, train


@pytest.fixture(scope="module")
def trainer(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Trainer:
    return train(toy_settings(data, max_steps=3), tmp_path_factory.mktemp("run"))


def _filter(trainer: Trainer, folder: Path, text: str, *flags: str) -> Result:
    (folder / "pairs.tsv").write_text(text, "utf-8")
    arguments = ["--model", str(trainer.run_folder.checkpoint), "--output", str(folder / "kept.tsv"), *flags]
    languages = ["--source", "en", "--target", "de"]
    return CliRunner().invoke(app, ["filter", str(folder / "pairs.tsv"), *languages, *arguments])


def test_the_loss_of_a_pair_does_not_depend_on_its_batch(trainer: Trainer) -> None:
    device, corpus, model = torch.device("cpu"), trainer.corpus, trainer.model.eval()
    losses = pair_losses(model, corpus, device)
    assert len(losses) == len(corpus.targets)
    for index in (0, 7, 450):
        batch = corpus.batch(np.array([index]), device)
        with torch.no_grad():
            scores = torch.log_softmax(model(batch.source, batch.source_mask, batch.target_inputs)[0], dim=-1)
        expected = -scores.gather(1, batch.labels[0][:, None]).mean()
        assert math.isclose(losses[index], float(expected), rel_tol=1e-4)


def test_the_worst_share_of_each_length_is_dropped() -> None:
    losses = np.array([9.0, 8.0, 1.0, 2.0, 3.0, 0.4, 0.3, 0.2, 0.1, 0.5])
    lengths = [2, 3, 2, 3, 2, 40, 50, 60, 33, 40]  # two classes; the first has the larger losses throughout
    assert np.flatnonzero(~kept_pairs(losses, lengths, 0.2)).tolist() == [0, 9]
    assert kept_pairs(losses, lengths, 0.0).all()
    assert not kept_pairs(losses, lengths, 1.0).any()


@pytest.mark.parametrize("flags", [(), ("--swap-columns",)])
def test_kept_and_dropped_pairs_are_written_in_the_columns_and_the_order_of_the_file(
    flags: tuple[str, ...], trainer: Trainer, tmp_path: Path
) -> None:
    lines = [f"ant {word}\t{word} ant" for word in ("bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ant")]
    dropped = ("--dropped", str(tmp_path / "dropped.tsv"), "--drop", "0.25")
    result = _filter(trainer, tmp_path, "\n".join([*lines, f"{'bee ' * 300}\tbee"]) + "\n", *dropped, *flags)
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith("kept.tsv; 1 are longer than 256 tokens\n")
    kept = (tmp_path / "kept.tsv").read_text("utf-8").splitlines()
    worst = (tmp_path / "dropped.tsv").read_text("utf-8").splitlines()
    assert kept == [line for line in lines if line in kept]
    assert {line.rpartition("\t")[0] for line in worst} | set(kept) == set(lines)
    assert all(float(line.split("\t")[2]) > 0 for line in worst)
    assert len(worst) in (2, 3)  # of one or two classes of lengths
