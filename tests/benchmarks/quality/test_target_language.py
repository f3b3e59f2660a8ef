"""Benchmarks of a checkpoint with several target languages, against Hugging Face on the same checkpoint."""

import json
from pathlib import Path

import pytest
import typer

from benchmarks.quality import bleu, parity
from bundle.loading import Bundle, load_bundle
from export.exporter import export_bundle
from tests.export.tiny_checkpoint import WORDS, write_checkpoint


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random checkpoint whose first word decides between German and Swedish."""
    folder = write_checkpoint(tmp_path_factory.mktemp("several") / "en-gem", {"forced_eos_token_id": None})
    vocabulary = json.loads((folder / "vocab.json").read_text("utf-8"))
    by_id = {token: piece for piece, token in vocabulary.items()} | {2: ">>deu<<", 3: ">>swe<<"}
    (folder / "vocab.json").write_text(json.dumps({piece: token for token, piece in by_id.items()}), "utf-8")
    generation = json.loads((folder / "generation_config.json").read_text("utf-8")) | {"max_length": 24}
    (folder / "generation_config.json").write_text(json.dumps(generation), "utf-8")
    languages = {"source_lang": "eng", "target_lang": "gem"}
    (folder / "tokenizer_config.json").write_text(json.dumps(languages), "utf-8")
    return folder


@pytest.fixture(scope="module")
def bundle(checkpoint: Path) -> Bundle:
    return load_bundle(export_bundle(checkpoint, checkpoint.parent / "bundle", "float32").path)


@pytest.fixture(scope="module")
def data(checkpoint: Path) -> Path:
    file = checkpoint.parent / "dev.tsv"
    lines = [f"{' '.join(WORDS[start:])}.\tder Hund" for start in range(6)]
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return file


@pytest.mark.parametrize("target", ["de", "sv"])
def test_parity_encodes_the_language_token_as_hugging_face_does(
    target: str, checkpoint: Path, bundle: Bundle, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as exit_:
        parity.main(checkpoint, bundle.path, [data], target=target)
    output = capsys.readouterr().out
    assert exit_.value.exit_code == 0, output
    assert "6 sentences; source token ids differ in 0" in output
    assert "greedy: 6 of 6 equal token for token" in output


def test_bleu_scores_every_search_in_the_chosen_language(
    bundle: Bundle, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bleu.main([bundle.path], [data], target="sv")
    assert capsys.readouterr().out.count("| dev.tsv | 6 | float32 |") == 2
