"""The models that come along: loaded, small, described, and better than nothing."""

import io

import pytest
from sacrebleu.metrics import CHRF

from bundle.loading import load_bundle
from server.cli.offline_options import OfflineOptions
from server.cli.translate.lines import translate_file
from server.interface.decoding_options import DecodingOptions
from server.operations.defaults import DEFAULT_MODEL

MODELS = DEFAULT_MODEL.parent
MAX_BYTES = 40_000_000
EVERYDAY = MODELS.parent / "benchmarks" / "quality" / "everyday.en-de.tsv"  # no model is trained on them
NUM_SENTENCES, MIN_CHRF = 100, 45


@pytest.mark.parametrize("name", sorted(path.name for path in MODELS.iterdir() if (path / "bundle.json").is_file()))
def test_a_model_that_comes_along_is_small_and_described(name: str) -> None:
    bundle = load_bundle(MODELS / name)
    source, target = name.split("-")
    assert (bundle.config.name, bundle.config.precision) == (name, "int8")
    assert (bundle.config.source_languages, bundle.config.target_languages) == ((source,), (target,))
    assert set(bundle.config.quality) == {name}, "run `kvasir calibrate` after a change of the weights"
    assert sum(path.stat().st_size for path in bundle.path.iterdir()) < MAX_BYTES
    card = (bundle.path / "README.md").read_text("utf-8")
    for needed in ("| int8 | beam 4 |", "nrefs:1|case:mixed", "## Attribution", "Tatoeba (CC BY 2.0 FR"):
        assert needed in card


@pytest.mark.parametrize("name", ["en-de", "de-en"])
def test_a_model_that_comes_along_translates_what_people_say_every_day(name: str) -> None:
    pairs = [line.split("\t") for line in EVERYDAY.read_text("utf-8").splitlines()[:NUM_SENTENCES]]
    sources, references = ([pair[column] for pair in pairs] for column in ((0, 1) if name == "en-de" else (1, 0)))
    written = io.BytesIO()
    options = OfflineOptions(threads=1, decoding=DecodingOptions(beam_size=4))
    translate_file([load_bundle(MODELS / name)], io.BytesIO("\n".join(sources).encode()), written, options)
    translations = written.getvalue().decode().splitlines()
    assert CHRF().corpus_score(translations, [references]).score > MIN_CHRF
