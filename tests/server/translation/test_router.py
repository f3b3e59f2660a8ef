import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from server.interface.errors import UnsupportedPair, UnsupportedTask
from server.text.language_tags import match_language
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.router import Router, TaskModels
from tests.fakes.echo import EchoGenerator, make_bundle


def test_a_model_that_only_translates_names_its_route(tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path)
    models = TaskModels([Pipeline(EchoGenerator(bundle), TranslationLimits())])
    route = re.escape(f"no model here can embed; use another route: {bundle.config.name}: POST /v1/translate")
    for name in (None, bundle.config.name):
        with pytest.raises(UnsupportedTask, match=route):
            models.find("embed", name)


def _pipeline(folder: Path, source: str, target: str) -> Pipeline:
    folder.mkdir()
    return Pipeline(EchoGenerator(make_bundle(folder, languages=(source, target))), TranslationLimits())


@pytest.fixture
def router(tmp_path: Path) -> Router:
    return Router([_pipeline(tmp_path / "1", "en", "de"), _pipeline(tmp_path / "2", "de", "pt-BR")])


@pytest.mark.parametrize("tag", ["fr", "", "e", "french", "\ud800"])
def test_other_tags_find_nothing(tag: str) -> None:
    assert match_language(tag, ["en", "de"]) is None


def test_a_pair_finds_its_pipeline_and_the_tags_of_its_bundle(router: Router) -> None:
    route = router.find("DE", "pt")
    assert (route.source, route.target) == ("de", "pt-BR")
    assert route.models == ("echo-de-pt-BR",)


def test_one_language_is_enough_if_there_is_no_choice(router: Router) -> None:
    assert router.find(None, "de").source == "en"
    assert router.find("de", None).target == "pt-BR"


def test_a_missing_pair_is_rejected_with_the_available_ones(router: Router) -> None:
    with pytest.raises(UnsupportedPair, match="from en to fr; available: de to pt-BR, en to de"):
        router.find("en", "fr")
    with pytest.raises(UnsupportedPair, match="from en to pt; available"):
        router.find("en", "pt")


def test_a_choice_is_not_guessed(router: Router) -> None:
    with pytest.raises(UnsupportedPair, match="`source` and `target` are ambiguous"):
        router.find(None, None)


def test_two_bundles_with_the_same_name_are_rejected(tmp_path: Path) -> None:
    twins = [_pipeline(tmp_path / name, "en", "de") for name in "12"]
    with pytest.raises(ValueError, match="two bundles have the name echo-en-de"):
        Router(twins)


def test_an_equal_tag_goes_before_another_of_the_same_language(tmp_path: Path) -> None:
    router = Router([_pipeline(tmp_path / "1", "pt-BR", "de"), _pipeline(tmp_path / "2", "pt", "de")])
    assert router.find("pt", "de").source == "pt"
    assert router.find("pt-BR", "de").source == "pt-BR"


def test_a_pair_without_a_model_goes_through_the_pivot_and_only_through_it(tmp_path: Path) -> None:
    pipelines = [_pipeline(tmp_path / pair, *pair.split("-")) for pair in ("de-en", "en-fr", "fr-es")]
    route = Router(pipelines, pivot="en").find("de", "fr")
    assert (route.source, route.pivot, route.target) == ("de", "en", "fr")
    assert (route.name, route.models) == ("echo-de-en+echo-en-fr", ("echo-de-en", "echo-en-fr"))
    for pivot, source, target in (("", "de", "fr"), ("en", "de", "es"), ("en", "de", "de")):
        with pytest.raises(UnsupportedPair, match=f"from {source} to {target}"):
            Router(pipelines, pivot).find(source, target)


def test_a_model_goes_before_the_pivot(tmp_path: Path) -> None:
    pipelines = [_pipeline(tmp_path / pair, *pair.split("-")) for pair in ("de-en", "en-fr", "de-fr")]
    router = Router(pipelines, pivot="en")
    assert router.find("de", "fr").models == ("echo-de-fr",)
    assert router.find(None, "en").models == ("echo-de-en",)


MANY = tuple(f"q{first}{second}" for first in "abcdefghijklmn" for second in "abcdefghijklmn")


def _multilingual(folder: Path) -> Router:
    folder.mkdir()
    bundle = make_bundle(folder, languages=("en", "de"))
    config = bundle.config.model_copy(
        update={
            "source_languages": ("en", "de", "zh-Hant", *MANY),
            "target_languages": ("en", "de", "zh-Hant", *MANY),
            "language_aliases": {"deu_Latn": "de", "eng_Latn": "en", "zho_Hant": "zh-Hant"},
        }
    )
    return Router([Pipeline(EchoGenerator(replace(bundle, config=config)), TranslationLimits())])


@pytest.mark.parametrize("spelling", ["de", "deu_Latn", "DEU-latn", "de-AT"])
def test_the_spelling_of_a_checkpoint_finds_its_language(spelling: str, tmp_path: Path) -> None:
    route = _multilingual(tmp_path / "1").find("eng_Latn", spelling)
    assert (route.source, route.target) == ("en", "de")


def test_a_wrong_language_of_a_model_with_many_is_rejected_with_all_of_them(tmp_path: Path) -> None:
    router = _multilingual(tmp_path / "1")
    for source, target in (("en", "xx"), ("en", None), (None, None), ("en", "en")):
        with pytest.raises(UnsupportedPair) as raised:
            router.find(source, target)
        assert "; to de, en, qaa, qab," in str(raised.value)
        assert len(str(raised.value)) < 5000


def test_a_model_with_many_languages_finds_a_pair_in_milliseconds(tmp_path: Path) -> None:
    router = _multilingual(tmp_path / "1")
    started = time.process_time()
    for language in MANY[:50]:
        assert router.find("en", language).target == language
    assert time.process_time() - started < 5
