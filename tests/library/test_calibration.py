"""`kvasir calibrate`: the facts in bundle.json separate good translations from others, and repairs that gain."""

import asyncio
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import CHRF
from typer.testing import CliRunner

from bundle.loading import load_bundle
from bundle.manifest import Repair
from kvasir_commands import app
from library.card import write_section
from library.repairs import Decoder, RepairFigures, repair_figures
from server.interface.decoding_options import DecodingOptions
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import Translation, TranslationRequest
from server.workers.pool import EnginePool, PoolOptions

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
    learned: dict[str, object] = {"quality": {}, "repairs": {}, "copying": None}
    assert after.model_copy(update=learned) == before.model_copy(update=learned)
    assert after.quality["en-de"] != before.quality.get("en-de")
    qualities = [each.quality or 0.0 for each in _translate(bundle, return_quality=True)]
    good = [quality for quality, mean in zip(qualities, means, strict=True) if mean >= median]
    bad = [quality for quality, mean in zip(qualities, means, strict=True) if mean < median]
    assert sum(good) / len(good) > 0.75 > 0.25 > sum(bad) / len(bad)

    assert after.copying is not None
    assert after.copying.masks
    card = (bundle / "README.md").read_text("utf-8")
    assert card.count("## Copying and repairs, en-de") == 1
    assert all(f"| {repair} | " in card for repair in ("numbers", "parts", "capitals"))

    manifest = (bundle / "bundle.json").read_bytes()
    pairs.write_text("".join(lines[:20]), encoding="utf-8")
    assert "at least 100 sentences must have a chrF of 40 or more, and 100 less" in _calibrate(bundle, "--data", pairs)
    assert (bundle / "bundle.json").read_bytes() == manifest


def test_a_repair_is_on_where_it_gains_and_off_where_it_does_not(bundle: Path) -> None:
    """The references are those translations that a bundle writes with one repair, or without any."""
    config = load_bundle(bundle).config.model_copy(update={"repairs": {}})
    texts = [sentence.upper() for sentence in SENTENCES[::4]]
    shouted: dict[str, tuple[Repair, ...]] = {"en-de": ("capitals",)}
    chrf = CHRF()

    def score(translation: str, reference: str) -> float:
        return float(chrf.sentence_score(translation, [reference]).score)

    decoder = Decoder(load_bundle(bundle), beam_size=1)
    try:
        plain = decoder.run(texts, ("en", "de"), config)
        small = decoder.run(texts, ("en", "de"), config.model_copy(update={"repairs": shouted}))
        for run, is_wanted in ((plain, False), (small, True)):
            pairs = [(text, done.text) for text, done in zip(texts, run.translations, strict=True)]
            figures = repair_figures(decoder, config, ("en", "de"), pairs, plain, score)
            [capitals] = [each for each in figures if each.repair == "capitals"]
            assert capitals.num_changed == capitals.num_better + capitals.num_worse > len(texts) / 2
            assert capitals.is_gain == is_wanted
            assert [each.repair for each in figures if each.is_gain and each.num_changed == 0] == []
    finally:
        decoder.close()


@pytest.mark.parametrize(
    ("figures", "is_gain"),
    [
        (RepairFigures("numbers", 900, 13, 5, 8, -1.7, 300, (280, 293), 0.01, 0.01), True),
        (RepairFigures("numbers", 900, 40, 10, 30, -1.7, 300, (280, 293), 0.01, 0.01), False),
        (RepairFigures("numbers", 900, 13, 9, 4, 1.7, 300, (280, 280), 0.01, 0.01), False),
        (RepairFigures("parts", 900, 40, 30, 10, 1.7, 300, (280, 280), 0.04, 0.01), True),
        (RepairFigures("parts", 900, 40, 30, 10, 1.7, 300, (280, 280), 0.15, 0.01), False),
        (RepairFigures("parts", 900, 40, 30, 10, -0.1, 300, (280, 280), 0.04, 0.01), False),
        (RepairFigures("parts", 900, 10, 6, 4, 1.7, 300, (280, 280), 0.04, 0.01), False),
    ],
)
def test_a_repair_gains_by_what_it_is_for_and_at_a_bounded_cost(figures: RepairFigures, is_gain: bool) -> None:
    assert figures.is_gain == is_gain


@given(st.text(alphabet="ab#|\n ", max_size=40), st.text(alphabet="cd|\n ", max_size=20))
def test_a_section_of_a_card_is_replaced_and_all_others_stay(others: str, text: str) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_section(folder, "Repairs", text)
        assert not list(folder.iterdir())  # no card, no section
        card = folder / "README.md"
        before = f"# A model\n\n## Repairs\n\nold\n\n## Repairs of others\n\n{others}\n"
        card.write_text(before, "utf-8")
        for _ in range(2):
            write_section(folder, "Repairs", text)
            written = card.read_text("utf-8")
            assert written == before.replace("old", text, 1)
        card.write_text("# A model\n", "utf-8")
        write_section(folder, "Repairs", text)
        assert card.read_text("utf-8") == f"# A model\n\n## Repairs\n\n{text}\n"
