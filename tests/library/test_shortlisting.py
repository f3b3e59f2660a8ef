import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bundle.loading import load_bundle
from bundle.tensors import SHORTLIST_FILE
from export.recovery import read_bundle
from kvasir_commands import app
from server.engine.shortlist import ListedTokens
from server.text.tokenizers.registry import open_tokenizer

PAIRS = (
    ("The house is green.", "Das Haus ist grün."),
    ("The dog is old.", "Der Hund ist alt."),
    ("A green dog sees the house.", "Ein grüner Hund sieht das Haus."),
)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return Path(shutil.copytree("models/en-de", tmp_path / "en-de"))


def test_a_bundle_gets_a_shortlist_of_the_data(bundle: Path, tmp_path: Path) -> None:
    data = tmp_path / "pairs.tsv"
    data.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS * 3), "utf-8")
    arguments = ["shortlist", str(bundle), "--data", str(data), "--first", "2", "--best", "4"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "from 9 pairs" in result.stdout
    loaded = load_bundle(bundle)
    tokenizer, listed = open_tokenizer(loaded), ListedTokens.open(loaded)
    tokens = set(listed.of(tokenizer.encode("The dog is old.")).tolist())
    assert set(tokenizer.encode_target("Hund")) <= tokens
    assert loaded.config.special_tokens.end_of_sequence in tokens
    assert len(tokens) < 60
    # Again, with other data: the graph has its inputs already.
    again = CliRunner().invoke(app, arguments[:-4])
    assert again.exit_code == 0, again.output
    assert load_bundle(bundle).config.has_shortlist
    # A checkpoint for another export keeps it, and its weights.
    recovered, original = read_bundle(bundle), read_bundle(Path("models/en-de"))
    assert recovered.shortlist == bundle / SHORTLIST_FILE
    assert original.shortlist is None
    assert all(weight.equal(original.weights[name]) for name, weight in recovered.weights.items())


def test_data_without_pairs_and_bundles_of_another_kind_are_rejected(bundle: Path, tmp_path: Path) -> None:
    data = tmp_path / "pairs.tsv"
    data.write_text("word " * 500 + "\t" + "Wort " * 500 + "\n", "utf-8")
    before = (bundle / "bundle.json").read_bytes()
    result = CliRunner().invoke(app, ["shortlist", str(bundle), "--data", str(data)])
    assert result.exit_code == 1
    assert "must have pairs of at most 100 tokens" in result.stderr
    assert (bundle / "bundle.json").read_bytes() == before
    assert sorted(path.name for path in bundle.iterdir()) == sorted(p.name for p in Path("models/en-de").iterdir())
