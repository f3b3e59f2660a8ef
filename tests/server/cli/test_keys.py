import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kvasir_commands import app
from server.operations.api_keys.key_file import KeyFile, KeyLimits, Usage, parts_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.sqlite"


def _run(*arguments: str, file: Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["keys", *arguments, "--file", str(file)])
    return result.exit_code, result.stdout, result.stderr


def test_a_created_key_is_the_only_line_of_the_output(path: Path) -> None:
    code, output, errors = _run("add", "team", "--requests-per-minute", "60", file=path)
    assert code == 0
    key_id, secret = parts_of(output) or ("", "")
    key = KeyFile(path).all()[key_id]
    assert key.has_secret(secret)
    assert key.limits == KeyLimits(60, None)
    assert secret not in errors


def test_keys_are_listed_with_their_usage(path: Path) -> None:
    file = KeyFile(path)
    one, _ = file.add("team", KeyLimits(characters_per_day=5000))
    two, _ = file.add("guest", KeyLimits())
    file.record({"2026-01-01": {one.id: Usage(3, 40)}}, "2026-01-01")
    file.revoke(two.id)
    code, output, _ = _run("list", "--json", file=path)
    rows = [json.loads(line) for line in output.splitlines()]
    assert code == 0
    assert [(row["name"], row["status"], row["characters"]) for row in rows] == [
        ("team", "valid", 40),
        ("guest", "revoked", 0),
    ]
    assert rows[0]["characters_per_day"] == 5000
    table = _run("list", file=path)[1]
    assert one.id in table


def test_limits_change_and_zero_removes_one(path: Path) -> None:
    key, _ = KeyFile(path).add("team", KeyLimits(60, 5000))
    assert _run("limit", key.id, "--characters-per-day", "0", file=path)[0] == 0
    assert KeyFile(path).all()[key.id].limits == KeyLimits(60, None)


def test_a_key_is_revoked(path: Path) -> None:
    key, _ = KeyFile(path).add("team", KeyLimits())
    assert _run("revoke", key.id, file=path)[0] == 0
    assert KeyFile(path).all()[key.id].revoked is not None


@pytest.mark.parametrize("arguments", [("list",), ("revoke", "1234"), ("limit", "1234", "--characters-per-day", "1")])
def test_a_missing_file_is_one_line_with_the_way_out(path: Path, arguments: tuple[str, ...]) -> None:
    code, _, errors = _run(*arguments, file=path)
    assert code == 1
    assert errors.count("\n") == 1
    assert "kvasir keys add" in errors
    assert not path.exists()
