from pathlib import Path

import pytest
from pydantic import ValidationError

from server.cli.settings_flags import names_and_settings
from server.operations.settings import (
    ENVIRONMENT_PREFIX,
    Settings,
    unknown_variables,
)


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(ENVIRONMENT_PREFIX + name.upper(), raising=False)


def test_a_flag_wins_over_its_environment_variable_and_that_over_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names_and_settings([])[1].port == 8000
    monkeypatch.setenv("KVASIR_PORT", "9000")
    assert names_and_settings([])[1].port == 9000
    assert names_and_settings(["--port", "9001"])[1].port == 9001


def test_a_misspelled_variable_is_noticed_and_the_setting_that_was_meant() -> None:
    environment = [
        "PATH",
        "KVASIR_MAX_ROW",
        "KVASIR_COLOUR_OF_THE_SKY",
        "KVASIR_KERNELS",
        "kvasir_port",
        "KVASIR_MODEL",
    ]
    assert unknown_variables(environment) == {"KVASIR_COLOUR_OF_THE_SKY": None, "KVASIR_MAX_ROW": "KVASIR_MAX_ROWS"}


def test_lists_take_commas_in_the_environment_and_repeated_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVASIR_MODEL", "a, b")
    monkeypatch.setenv("KVASIR_CORS_ORIGINS", "https://one.example,https://two.example")
    settings = names_and_settings([])[1]
    assert settings.model == [Path("a"), Path("b")]
    assert settings.cors_origins == ["https://one.example", "https://two.example"]
    assert names_and_settings(["--model", "c", "--model", "d"])[1].model == [Path("c"), Path("d")]


def test_every_setting_is_a_flag_and_an_environment_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        names_and_settings(["--help"])[1]
    assert left.value.code == 0
    text = capsys.readouterr().out
    for name, value in Settings().model_dump().items():
        assert f"--{name.replace('_', '-')} " in text
        if isinstance(value, int | float):
            other = not value if isinstance(value, bool) else value + 1 if value < 8 else value - 1
            monkeypatch.setenv(ENVIRONMENT_PREFIX + name.upper(), str(other))
    changed = Settings()
    numbers = [name for name, value in Settings.model_construct() if isinstance(value, int | float)]
    assert numbers
    assert all(getattr(changed, name) != Settings.model_fields[name].default for name in numbers)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--port", "65536"], "65535"),
        (["--threads", "2", "--replicas", "3"], "`replicas` must be at most `threads` \\(2\\). Given: 3"),
        (["--engine-processes", "true", "--device", "cuda"], "`engine_processes` must be false"),
        (["--request-timeout-seconds", "nan"], "3600"),
    ],
)
def test_nonsense_is_refused_with_the_numbers(flags: list[str], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        names_and_settings(flags)[1]


@pytest.mark.parametrize("flag", ["--quite-fast", "--max-row"])
def test_unknown_and_abbreviated_flags_end_the_program(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        names_and_settings([f"{flag}=2"])[1]
    assert left.value.code == 2
    assert flag in capsys.readouterr().err


def test_threads_are_shared_out_among_models_and_their_replicas() -> None:
    assert Settings(threads=8).shares(1) == (8, 1)
    assert Settings(threads=8, replicas=2).shares(1) == (2, 4)
    assert Settings(threads=8).shares(3) == (3, 1)
    assert Settings(threads=8, replicas=2).shares(2) == (2, 2)
    assert Settings(threads=2, replicas=2).shares(5) == (1, 1)


def test_images_do_not_start_open_to_every_machine(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=r"`api_keys` is required on an address that other machines reach"):
        Settings(host="0.0.0.0", require_keys=True)
    assert Settings(host="0.0.0.0", require_keys=True, api_keys=tmp_path / "keys.sqlite").require_keys
    assert Settings(host="127.0.0.1", require_keys=True).require_keys
    assert Settings(host="0.0.0.0", unix_socket=tmp_path / "socket", require_keys=True).require_keys


def test_threads_are_lent_on_request() -> None:
    assert Settings(threads=4).num_lent_replicas(2) == 0
    assert Settings(threads=4, lend_threads=True).num_lent_replicas(2) == 2
    assert Settings(threads=4, lend_threads=True).num_lent_replicas(1) == 0, "one model has all threads already"
    with pytest.raises(ValidationError, match="`lend_threads` needs device cpu, and `replicas` unset"):
        Settings(threads=4, replicas=1, lend_threads=True)
