from collections.abc import Sequence

import pytest

from server.http.protocols.deepl.fields import (
    formality_of,
    language_code,
    target_codes,
    target_tag,
)
from server.http.requests.parameters import Parameters
from server.text.formality import Formality
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.router import Router
from tests.fakes.echo import EchoFor


def _sent(**values: object) -> Parameters:
    return Parameters({name: [value] for name, value in values.items()}, is_json=True)


@pytest.fixture(scope="module")
def router(echo_for: EchoFor) -> Router:
    engines = [echo_for(*pair) for pair in (("en", "de"), ("de", "en"), ("fr", "pt-BR"))]
    limits = TranslationLimits()
    return Router([Pipeline(each, limits) for each in engines])


@pytest.mark.parametrize(
    ("source", "target", "tag"),
    [
        (None, "DE", "de"),
        ("EN", "DE", "de"),
        ("EN", "EN-GB", "en"),
        ("FR", "PT-PT", "pt-BR"),
        ("DE", "EN-US", "en"),
        ("auto", "PT", "pt-BR"),
    ],
)
def test_the_target_language(router: Router, source: str | None, target: str, tag: str) -> None:
    assert target_tag(_sent(source_lang=source, target_lang=target), router) == tag


@pytest.mark.parametrize(
    ("tag", "source", "targets"),
    [
        ("en", "EN", ("EN-GB", "EN-US")),
        ("pt", "PT", ("PT-PT", "PT-BR")),
        ("pt-BR", "PT", ("PT-BR",)),
        ("zh_Hant", "ZH", ("ZH-HANT",)),
    ],
)
def test_languages_are_written_as_this_protocol_does(tag: str, source: str, targets: Sequence[str]) -> None:
    assert (language_code(tag), tuple(target_codes(tag))) == (source, tuple(targets))


@pytest.mark.parametrize(
    ("value", "target", "expected"),
    [
        (None, "de", None),
        ("default", "en", None),
        ("more", "de", Formality.FORMAL),
        ("less", "de", Formality.INFORMAL),
        ("prefer_more", "de", Formality.FORMAL),
        ("prefer_less", "de", Formality.INFORMAL),
        ("prefer_less", "en", None),
    ],
)
def test_the_form_of_address(value: str | None, target: str, expected: Formality | None) -> None:
    assert formality_of(_sent(formality=value), target) is expected
