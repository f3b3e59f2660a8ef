from collections.abc import Sequence

import pytest

from server.http.requests.model_names import languages_of, model_names
from server.interface.errors import InvalidRequest
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.router import Router
from tests.fakes.echo import EchoFor, EchoGenerator


@pytest.fixture
def router(echo_for: EchoFor) -> Router:
    engines = [echo_for("en", "de"), echo_for("pt-BR", "en"), echo_for("en", "zh-Hant")]
    return _router(engines)


def _router(engines: Sequence[EchoGenerator]) -> Router:
    limits = TranslationLimits()
    pipelines = [Pipeline(engine, limits) for engine in engines]
    return Router(pipelines)


@pytest.mark.parametrize(
    ("name", "languages"),
    [
        ("echo-en-de", ("en", "de")),
        ("KVASIR:en-de", ("en", "de")),
        ("kvasir:auto-de", ("auto", "de")),
        ("kvasir:-de", ("auto", "de")),
        ("kvasir:en-zh-Hant", ("en", "zh-Hant")),
        ("kvasir:pt-BR-en", ("pt-BR", "en")),
        ("kvasir: German", ("auto", "German")),
        ("gpt-4", None),
    ],
)
def test_languages_that_a_name_selects(router: Router, name: str, languages: tuple[str, str] | None) -> None:
    assert languages_of(name, router) == languages


@pytest.mark.parametrize("name", ["kvasir:", "kvasir:tlh", "kvasir:tlh-de"])
def test_unknown_languages_are_an_error_with_the_names(router: Router, name: str) -> None:
    with pytest.raises(InvalidRequest, match=r"available: echo-en-de, .*kvasir:en-de"):
        languages_of(name, router)


def test_all_names_are_listed_and_those_of_pairs_only_if_they_are_few(
    router: Router, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = model_names(router)
    assert names[:3] == ["echo-en-de", "echo-pt-BR-en", "echo-en-zh-Hant"]
    pairs = {f"kvasir:{route.source}-{route.target}" for route in router.routes}
    targets = {f"kvasir:{target}" for target in router.target_languages}
    assert {"kvasir:en-de", "kvasir:pt-BR-en"} <= pairs
    assert set(names[3:]) == pairs | targets
    monkeypatch.setattr("server.http.requests.model_names.MAX_LISTED_PAIRS", len(router.routes))
    assert model_names(router) == names
    monkeypatch.setattr("server.http.requests.model_names.MAX_LISTED_PAIRS", len(router.routes) - 1)
    assert set(model_names(router)[3:]) == targets
