"""A decoding option is declared once: everything that lists options reads the fields of `DecodingOptions`."""

from typing import Annotated

import typer
from fastapi import FastAPI
from pydantic import Field
from starlette.testclient import TestClient
from typer.testing import CliRunner

from server.cli.command import with_options
from server.http.protocols.native.texts import TranslateBody
from server.interface.decoding_options import BEAM, Applies, DecodingOptions
from server.interface.option_table import options_page, section


class OptionsWithOneMore(DecodingOptions):
    """Options as after the addition of a field."""

    length_reward: Annotated[float, Applies(BEAM), Field(ge=0, le=5, description="reward for each token")] = 0.25


class BodyWithOneMore(TranslateBody, OptionsWithOneMore):
    """A request body as after the addition of a field."""


def test_a_new_field_is_a_field_of_request_bodies_with_its_range() -> None:
    app = FastAPI()

    @app.post("/translate")
    def translate(body: BodyWithOneMore) -> float:
        return body.length_reward

    client = TestClient(app)
    schema = client.get("/openapi.json").json()["components"]["schemas"]["BodyWithOneMore"]["properties"]
    described = {"minimum": 0, "maximum": 5, "default": 0.25, "description": "reward for each token"}
    assert described.items() <= schema["length_reward"].items()
    assert client.post("/translate", json={"text": "Tea.", "length_reward": 2}).json() == 2
    assert client.post("/translate", json={"text": "Tea.", "length_reward": 6}).status_code == 422
    assert set(DecodingOptions.model_fields) < set(schema)


def test_a_new_field_is_a_flag_of_the_command_line_with_its_range() -> None:
    app, received = typer.Typer(), []

    @app.command()
    @with_options("decoding", OptionsWithOneMore, section)
    def translate(*, decoding: DecodingOptions) -> None:
        received.append(decoding)

    assert CliRunner().invoke(app, ["--length-reward", "2", "--suppress-tokens", "7"]).exit_code == 0
    assert received == [OptionsWithOneMore(length_reward=2, suppress_tokens=(7,))]
    assert CliRunner().invoke(app, ["--length-reward", "6"]).exit_code == 2
    help_text = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).stdout
    for flag in ("length-reward", *(name.replace("_", "-") for name in DecodingOptions.model_fields)):
        assert f"--{flag}" in help_text
    assert "Reward for each token." in help_text


def test_a_new_field_is_a_row_of_the_reference_page() -> None:
    row = "| `length_reward` | number | `0.25` | 0 to 5 | reward for each token |"
    before, beams = options_page(OptionsWithOneMore).split("## Beam search")
    assert row not in before
    assert row in beams.split("##")[0]


def test_a_field_excludes_only_other_fields() -> None:
    names = DecodingOptions.model_fields
    for name, field in names.items():
        for applicable in (each for each in field.metadata if isinstance(each, Applies)):
            assert isinstance(applicable.excludes, tuple), name
            assert set(applicable.excludes) <= names.keys() - {name}
