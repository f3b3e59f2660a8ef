"""kvasir train as a person meets it, down to a bundle that translates."""

import os
import signal
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner, Result

from export.exporter import export_bundle
from kvasir_commands import app
from model.families.registry import read_checkpoint
from model.training.trainer import Trainer
from server.text.tokenizers.registry import open_tokenizer
from tests.model.training.toy_runs import write_reversed

SIZES = (
    "--vocab-size 300 --d-model 16 --num-heads 2 --feed-forward-width 32 --num-encoder-layers 1 --num-decoder-layers 1"
)
LENGTHS = "--batch-tokens 300 --max-steps 6 --snapshot-every 3 --validate-every 3 --warmup-steps 2 --log-every 1"


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["train", *arguments])


def _arguments(folder: Path, run: str = "run") -> list[str]:
    data = write_reversed(folder / "train.tsv", 100, seed=1, longest=4)
    unseen = write_reversed(folder / "unseen.tsv", 10, seed=2, longest=4)
    languages = ["--source", "de", "--target", "en", "--swap-columns", "--device", "cpu", "--threads", "1"]
    files = ["--data", str(data), "--validation", str(unseen)]
    return [str(folder / run), *files, *languages, *SIZES.split(), *LENGTHS.split()]


def test_text_becomes_a_checkpoint_and_that_a_bundle_that_translates(tmp_path: Path) -> None:
    arguments = _arguments(tmp_path)
    result = _run(*arguments)
    assert result.exit_code == 0, result.output
    checkpoint = tmp_path / "run" / "de-en"
    assert f"kvasir export {checkpoint} BUNDLE" in result.stdout
    assert {path.name for path in checkpoint.iterdir()} == {
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "source.spm",
        "target.spm",
        "tokenizer_config.json",
        "vocab.json",
    }
    bundle = export_bundle(checkpoint, tmp_path / "bundle", "float32")
    config = bundle.config
    assert (config.provenance.source, config.source_languages, config.target_languages) == ("de-en", ("de",), ("en",))
    translated = CliRunner().invoke(app, ["translate", "--model", str(bundle.path)], input="ant bee\n")
    assert translated.exit_code == 0, translated.stderr
    assert translated.stdout.count("\n") == 1
    tokenizer = open_tokenizer(bundle)
    assert tokenizer.decode(tokenizer.encode_target("ant bee")) == "ant bee"
    more = _run(*_arguments(tmp_path, "more"), "--init", str(bundle.path), "--learning-rate", "1e-9", "--dropout", "0")
    assert more.exit_code == 0, more.output
    first, second = (read_checkpoint(folder).weights for folder in (checkpoint, tmp_path / "more" / "de-en"))
    for name, weight in first.items():
        torch.testing.assert_close(second[name], weight, atol=1e-6, rtol=0)
    # The same command once more finds everything done.
    assert _run(*arguments).exit_code == 0


def test_a_signal_ends_a_run_that_goes_on_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    update = Trainer.update

    def interrupted(trainer: Trainer, chosen: object) -> float:
        loss = update(trainer, chosen)  # type: ignore[arg-type]
        if trainer.position.step == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return loss

    monkeypatch.setattr(Trainer, "update", interrupted)
    before = signal.getsignal(signal.SIGINT)
    arguments = _arguments(tmp_path)
    result = _run(*arguments)
    assert result.exit_code == 1
    assert "interrupted after 2 updates; run the same command to resume" in result.stderr
    assert signal.getsignal(signal.SIGINT) == before
    assert _run(*arguments).exit_code == 0


def test_a_training_that_diverges_fails_with_the_way_out(tmp_path: Path) -> None:
    result = _run(*_arguments(tmp_path), "--learning-rate", "1e30")
    assert result.exit_code == 1
    assert result.stderr.startswith("kvasir: training diverged at update ")
    assert "--learning-rate" in result.stderr
    assert result.stderr.count("\n") == 1
