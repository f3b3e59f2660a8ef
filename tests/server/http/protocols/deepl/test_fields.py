from collections.abc import Sequence

import pytest
from fastapi import Response

from server.http.protocols.deepl.fields import (
    formality_of,
    language_code,
    names_of,
    one_of,
    source_tag,
    target_codes,
    target_tag,
    warn_of_ignored,
)
from server.http.requests.parameters import Parameters
from server.interface.errors import InvalidRequest
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


def _error(call: object, *arguments: object) -> str:
    with pytest.raises(InvalidRequest) as error:
        call(*arguments)  # type: ignore[operator]
    return str(error.value)


def test_a_field_has_one_of_its_values() -> None:
    assert one_of(_sent(a="x"), "a", ("x", "y")) == "x"
    assert one_of(_sent(a=True), "a", ("0", "1")) == "1"
    assert one_of(_sent(a=""), "a", ("x",)) is None
    assert one_of(_sent(), "a", ("x",)) is None
    assert "Value for 'a' not supported" in _error(one_of, _sent(a="z"), "a", ("x",))


def test_names_of_elements_are_separated_by_commas_and_limited() -> None:
    assert names_of(_sent(tags=["a, b", "c", ","]), "tags") == {"a", "b", "c"}
    names_of(_sent(tags=",".join(["a"] * 600) + "," + ",".join(["b"] * 400)), "tags")
    assert "at most 1000 names. Given: 1001" in _error(names_of, _sent(tags=[",".join(["a"] * 1000), "b"]), "tags")


@pytest.mark.parametrize(
    ("values", "warning"),
    [
        ({"text": "a"}, None),
        ({"text": "a", "new": ""}, None),
        ({"text": "a", "new": "x"}, '299 kvasir "ignored fields: new"'),
        ({'n"e w': "x", "a" * 100: "x"}, f'299 kvasir "ignored fields: n?e?w, {"a" * 64}"'),
    ],
)
def test_fields_without_effect_are_named(values: dict[str, object], warning: str | None) -> None:
    response = Response()
    warn_of_ignored(_sent(**values), response, ["text"])
    assert response.headers.get("Warning") == warning


def test_not_more_than_twenty_fields_are_named() -> None:
    response = Response()
    warn_of_ignored(_sent(**{f"f{number}": "x" for number in range(30)}), response, [])
    assert response.headers["Warning"].count(",") == 19


@pytest.mark.parametrize(("code", "tag"), [("EN", "en"), (" de ", "de"), ("auto", None), ("", None), (None, None)])
def test_the_source_language(router: Router, code: str | None, tag: str | None) -> None:
    assert source_tag(_sent(source_lang=code), router) == tag


@pytest.mark.parametrize("code", ["EN-GB", "XX"])
def test_a_source_language_has_no_variant(router: Router, code: str) -> None:
    assert "Value for 'source_lang' not supported" in _error(source_tag, _sent(source_lang=code), router)


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
    ("source", "target", "message"),
    [
        (None, "", "Parameter 'target_lang' not specified"),
        (None, "XX", "Value for 'target_lang' not supported."),
        ("EN", "PT-BR", "Value for 'target_lang' not supported with this source_lang"),
    ],
)
def test_a_target_language_that_cannot_be_reached(
    router: Router, source: str | None, target: str, message: str
) -> None:
    assert message in _error(target_tag, _sent(source_lang=source, target_lang=target), router)


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


def test_a_form_of_address_that_a_language_lacks_is_an_error_with_those_that_have_it() -> None:
    assert "Supported: de" in _error(formality_of, _sent(formality="more"), "en")
    assert "Value for 'formality' not supported" in _error(formality_of, _sent(formality="x"), "de")
