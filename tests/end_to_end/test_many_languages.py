"""A model with the languages of NLLB-200, from a checkpoint to HTTP."""

from collections.abc import Iterator

import pytest
import torch

from export.exporter import export_bundle
from kvasir_client import Client
from tests.end_to_end.servers import Served, started
from tests.model.families.family_checkpoints import write_family


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("nllb")
    export_bundle(write_family("nllb", folder / "checkpoint").folder, folder / "nllb")
    yield from started("--model", str(folder / "nllb"), "--replicas", "1", "--threads", "1")


def test_languages_have_short_codes_and_the_spelling_of_the_checkpoint(served: Served) -> None:
    body = {"text": "my dog sees the old house.", "beam_size": 4, "max_new_tokens": 8, "return_scores": True}
    with served.client() as client:
        listed = client.get("/v1/models")
        (model,) = listed.json()["models"]
        answers = [
            client.post("/v1/translate", json=body | {"source": source, "target": target}).json()["translations"]
            for source, target in (("en", "de"), ("eng_Latn", "deu_Latn"), ("EN", "deu-latn"))
        ]
        other = client.post("/v1/translate", json=body | {"source": "en", "target": "zho_Hant"}).json()["translations"]
    assert len(model["source_languages"]) == 202
    assert {"en", "de", "zh", "zh-Hant", "ace", "ace-Arab"} <= set(model["target_languages"])
    assert len(listed.content) < 40_000  # with a line for each pair they were 2.7 MB
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][0]["score"] != other[0]["score"]


def test_the_client_lists_all_pairs_that_follow_from_the_languages(served: Served) -> None:
    with Client(served.url) as client:
        models = client.models()
    assert len(models.pairs) == 202 * 201
    assert models.pairs[0].models == [models.models[0].name]
