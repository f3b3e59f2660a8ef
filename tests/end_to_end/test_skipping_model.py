"""Omissions of a trained model of another family: an M2M100 that was made to skip the last word of some texts."""

import asyncio

import pytest
import torch

from export.exporter import export_bundle
from server.interface.decoding_options import DecodingOptions
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import Translation, TranslationRequest
from server.workers.engine_pool import EnginePool
from server.workers.pool_options import PoolOptions
from tests.end_to_end.trained_models import FOLDER, enumerations, skips

TEXTS = enumerations(200, seed=-1)
SKIPPED = [skips(text) for text in TEXTS]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Translation]]:
    """The translations of all texts, by the value of `if_incomplete`."""
    torch.set_num_threads(1)
    bundle = export_bundle(FOLDER / "skipping", tmp_path_factory.mktemp("skipping") / "bundle", "int8")
    pool = EnginePool.open(bundle, PoolOptions(replicas=1, threads_per_replica=1, max_waiting=1000))
    try:
        pipeline = Pipeline(pool, TranslationLimits())
        return {
            mode: asyncio.run(pipeline.translate(_request(mode))).translations for mode in ("ignore", "flag", "recover")
        }
    finally:
        pool.close()


def _request(mode: str) -> TranslationRequest:
    return TranslationRequest(tuple(TEXTS), "en", "de", DecodingOptions.given({"if_incomplete": mode}))


def test_the_model_skips_as_it_was_made_to(answers: dict[str, list[Translation]]) -> None:
    expected = [text[: text.rindex(";")] + "." if skips(text) else text for text in TEXTS]
    right = [done.text == text for done, text in zip(answers["ignore"], expected, strict=True)]
    assert sum(right) >= 195
    assert sum(SKIPPED) > 50


def test_what_it_skips_is_named(answers: dict[str, list[Translation]]) -> None:
    named = [bool(done.incomplete) for done in answers["flag"]]
    assert sum(map(int.__and__, named, SKIPPED)) >= 0.9 * sum(SKIPPED)
    assert sum(is_named and not is_skipped for is_named, is_skipped in zip(named, SKIPPED, strict=True)) <= 3


def test_what_it_skips_is_recovered_and_other_texts_stay_as_they_are(answers: dict[str, list[Translation]]) -> None:
    recovered = [done.text == text for done, text in zip(answers["recover"], TEXTS, strict=True)]
    assert sum(map(int.__and__, recovered, SKIPPED)) >= 0.9 * sum(SKIPPED)
    for before, after, is_skipped in zip(answers["ignore"], answers["recover"], SKIPPED, strict=True):
        if not is_skipped and not after.recovered:
            assert (after.text, after.log_probability.hex()) == (before.text, before.log_probability.hex())
