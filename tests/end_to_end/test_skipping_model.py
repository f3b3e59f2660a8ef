"""Omissions of a trained model of another family: an M2M100 that was made to skip the last word of some texts."""

import asyncio
from dataclasses import replace

import pytest
import torch

from export.exporter import export_bundle
from server.interface.decoding_options import DecodingOptions
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import Translation, TranslationRequest
from server.workers.pool import EnginePool, PoolOptions
from tests.end_to_end.trained_models import FOLDER, enumerations, skips

TEXTS = enumerations(200, seed=-1)
SKIPPED = [skips(text) for text in TEXTS]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, list[Translation]]:
    """The translations of all texts, by the value of `repair`."""
    torch.set_num_threads(1)
    bundle = export_bundle(FOLDER / "skipping", tmp_path_factory.mktemp("skipping") / "bundle", "int8")
    bundle = replace(bundle, config=bundle.config.model_copy(update={"repairs": {"en-de": ("parts",)}}))
    pool = EnginePool.open(bundle, PoolOptions(replicas=1, threads_per_replica=1, max_waiting=1000))
    try:
        pipeline = Pipeline(pool, TranslationLimits())
        return {
            repair: asyncio.run(pipeline.translate(_request(repair=repair))).translations for repair in (False, True)
        }
    finally:
        pool.close()


def _request(*, repair: bool) -> TranslationRequest:
    return TranslationRequest(tuple(TEXTS), "en", "de", DecodingOptions(repair=repair))


def test_the_model_skips_as_it_was_made_to(answers: dict[bool, list[Translation]]) -> None:
    expected = [text[: text.rindex(";")] + "." if skips(text) else text for text in TEXTS]
    right = [done.text == text for done, text in zip(answers[False], expected, strict=True)]
    assert sum(right) >= 195
    assert sum(SKIPPED) > 50
    assert not any(done.repaired for done in answers[False])


def test_what_it_skips_is_repaired_or_named(answers: dict[bool, list[Translation]]) -> None:
    repaired = [done.text == text for done, text in zip(answers[True], TEXTS, strict=True)]
    assert sum(map(int.__and__, repaired, SKIPPED)) >= 0.9 * sum(SKIPPED)
    named = [bool(done.incomplete or done.repaired) for done in answers[True]]
    assert sum(map(int.__and__, named, SKIPPED)) >= 0.9 * sum(SKIPPED)
    assert sum(is_named and not is_skipped for is_named, is_skipped in zip(named, SKIPPED, strict=True)) <= 3


def test_other_texts_stay_as_they_are(answers: dict[bool, list[Translation]]) -> None:
    for before, after, is_skipped in zip(answers[False], answers[True], SKIPPED, strict=True):
        if not is_skipped and not after.repaired:
            assert (after.text, after.log_probability.hex()) == (before.text, before.log_probability.hex())
