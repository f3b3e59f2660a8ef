"""`kvasir calibrate`: the numbers in bundle.json separate good translations from others."""

import asyncio
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bundle.loading import load_bundle
from kvasir import app
from server.interface.decoding_options import DecodingOptions
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import Translation, TranslationRequest
from server.workers.engine_pool import EnginePool
from server.workers.pool_options import PoolOptions

SUBJECTS = ("The dog", "My old teacher", "A small child", "The president", "Our new neighbour", "The black cat")
VERBS = ("sees", "has forgotten", "wants to buy", "repaired", "does not like", "will find")
OBJECTS = ("the house", "a red ball", "the obsolete spectrometer", "my sister's bicycle", "this song", "the cheque")
SENTENCES = [f"{subject} {verb} {thing}." for subject in SUBJECTS for verb in VERBS for thing in OBJECTS]


def _translate(bundle: Path, **options: object) -> list[Translation]:
    pool = EnginePool.open(load_bundle(bundle), PoolOptions(replicas=1, max_waiting=1000))
    try:
        request = TranslationRequest(tuple(SENTENCES), "en", "de", DecodingOptions.given({"beam_size": 1, **options}))
        return asyncio.run(Pipeline(pool, TranslationLimits()).translate(request)).translations
    finally:
        pool.close()


def _calibrate(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["calibrate", *map(str, arguments), "--beam-size", "1"])
    return result.output if result.exit_code else f"ok: {result.output}"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model from English into German, without the calibration that comes with it."""
    folder = tmp_path_factory.mktemp("bundles") / "en-de"
    shutil.copytree("models/en-de", folder)
    return folder


def test_a_calibrated_bundle_finds_the_translations_that_its_references_reject(bundle: Path, tmp_path: Path) -> None:
    done = _translate(bundle, return_scores=True)
    means = [each.log_probability / each.target_tokens for each in done]
    median = sorted(means)[len(means) // 2]
    # References accept what the model is sure of.
    references = [each.text if mean >= median else "Xyz!" for each, mean in zip(done, means, strict=True)]
    pairs = tmp_path / "pairs.tsv"
    lines = [f"{text}\t{reference}\n" for text, reference in zip(SENTENCES, references, strict=True)]
    pairs.write_text("".join(lines), encoding="utf-8")
    before = load_bundle(bundle).config
    assert _calibrate(bundle, "--data", pairs).startswith("ok: en-de, en to de: 108 of 216 sentences have a chrF of 40")
    after = load_bundle(bundle).config
    assert after.model_copy(update={"quality": {}}) == before.model_copy(update={"quality": {}})
    assert after.quality["en-de"] != before.quality.get("en-de")
    qualities = [each.quality or 0.0 for each in _translate(bundle, return_quality=True)]
    good = [quality for quality, mean in zip(qualities, means, strict=True) if mean >= median]
    bad = [quality for quality, mean in zip(qualities, means, strict=True) if mean < median]
    assert sum(good) / len(good) > 0.75 > 0.25 > sum(bad) / len(bad)

    manifest = (bundle / "bundle.json").read_bytes()
    pairs.write_text("".join(lines[:20]), encoding="utf-8")
    assert "at least 100 sentences must have a chrF of 40 or more, and 100 less" in _calibrate(bundle, "--data", pairs)
    assert (bundle / "bundle.json").read_bytes() == manifest
