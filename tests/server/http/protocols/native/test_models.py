"""Models and languages over HTTP."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from bundle.manifest import GenerationDescription, GenerationTask, QualityCalibration
from server.http.app import create_app
from server.operations.settings import Settings
from server.text.language_tags import display_name
from tests.fakes.echo import EchoFor, EchoGenerator
from tests.server.http.protocols.native.test_texts import EVEN


def _changed(engine: EchoGenerator, **changes: object) -> EchoGenerator:
    config = engine.bundle.config.model_copy(update=changes)
    return EchoGenerator(replace(engine.bundle, config=config))


def _models(engines: Sequence[EchoGenerator]) -> dict[str, Any]:
    with TestClient(create_app(Settings(), engines)) as client:
        return dict(client.get("/v1/models").json())


@pytest.mark.parametrize(
    ("quality", "is_calibrated"),
    [({}, False), ({"en-de": EVEN}, False), ({"en-de": EVEN, "fr-de": EVEN}, True)],
)
def test_a_model_is_calibrated_if_all_its_pairs_are(
    echo: EchoGenerator, quality: dict[str, QualityCalibration], is_calibrated: bool
) -> None:
    engine = _changed(echo, source_languages=("en", "fr", "de"), quality=quality)
    [model] = _models([engine])["models"]
    assert model["calibrated"] is is_calibrated


def test_a_model_that_only_generates_has_its_tasks_and_is_not_calibrated(echo: EchoGenerator) -> None:
    tasks = {name: GenerationTask(prefix=name) for name in ("b", "a")}
    engine = _changed(
        echo, source_languages=(), target_languages=(), generation=GenerationDescription(tasks=tasks), quality={}
    )
    [model] = _models([engine])["models"]
    assert (model["tasks"], model["task_names"], model["calibrated"]) == (["generate"], ["a", "b"], False)


def test_pairs_are_listed_while_they_are_few_and_else_those_with_a_pivot(
    echo_for: EchoFor, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = [echo_for("de", "en"), echo_for("en", "fr")]
    pivot = {"source": "de", "target": "fr", "models": ["echo-de-en", "echo-en-fr"], "pivot": "en"}
    found = _models(engines)
    direct = [
        {"source": source, "target": target, "models": [f"echo-{source}-{target}"], "pivot": None}
        for source, target in (("de", "en"), ("en", "fr"))
    ]
    assert sorted(found["pairs"], key=str) == sorted([*direct, pivot], key=str)
    assert found["pairs_complete"] is True
    monkeypatch.setattr("server.http.protocols.native.models.MAX_LISTED_PAIRS", 3)
    assert _models(engines)["pairs_complete"] is True
    monkeypatch.setattr("server.http.protocols.native.models.MAX_LISTED_PAIRS", 2)
    found = _models(engines)
    assert (found["pairs"], found["pairs_complete"]) == ([pivot], False)


def test_every_language_has_its_names_and_directions(echo_for: EchoFor) -> None:
    with TestClient(create_app(Settings(), [echo_for("en", "de"), echo_for("cv", "en")])) as client:
        answer = client.get("/v1/languages", params={"in": "fr"}).json()
        english = client.get("/v1/languages").json()
    expected = [
        ("cv", "tchouvache", "чӑваш", True, False),
        ("de", "allemand", "Deutsch", False, True),
        ("en", "anglais", "English", True, True),
    ]
    keys = ("language", "name", "own_name", "source", "target")
    assert [tuple(each[key] for key in keys) for each in answer["languages"]] == expected
    assert [each["name"] for each in english["languages"]] == ["Chuvash", "German", "English"]


@pytest.mark.parametrize(
    ("tag", "in_language", "name"),
    [
        ("pt-BR", "de", "Portugiesisch"),
        ("pt-BR", "fr-CA", "portugais brésilien"),
        ("zh_hant", "en", "Traditional Chinese"),
        ("cv", "xx", "Chuvash"),
        ("ZZX", "de", "ZZX"),
    ],
)
def test_names_fall_back_to_the_primary_language_then_english_then_the_tag(
    tag: str, in_language: str, name: str
) -> None:
    assert display_name(tag, in_language) == name
