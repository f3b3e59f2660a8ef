"""The command `kvasir keys`: create, list, limit and revoke API keys."""

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from server.cli.help_pages import PlainCommand, plain_app
from server.cli.one_line_errors import one_line_errors
from server.operations.api_keys.key_file import LIMITS, ApiKey, KeyFile, KeyLimits, Usage

app = plain_app("Create, list, limit and revoke API keys. A running server applies changes within a second.")

_File = Annotated[
    Path,
    typer.Option(envvar="KVASIR_API_KEYS", metavar="FILE", help="SQLite file of keys: `--api-keys` of the server."),
]


def _limit(what: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        min=0, metavar="NUMBER", help=f"{what}; 0: no limit.", show_default=False
    )
    return option


_RequestsPerMinute = Annotated[int | None, _limit("Requests a minute")]
_CharactersPerDay = Annotated[int | None, _limit("Characters a day, from 0:00 UTC")]
_WaitingSentences = Annotated[int | None, _limit("Sentences in the queue of a model")]
_Documents = Annotated[int | None, _limit("Documents queued and stored")]
_JoinLines = Annotated[
    bool | None,
    typer.Option(
        "--join-lines/--no-join-lines",
        help="Texts of a request are lines of one text, such as captions, in requests without `context`.",
        show_default=False,
    ),
]
_TABLE = {
    "id": ["id"],
    "name": ["name"],
    "status": ["status"],
    "requests/min / waiting / documents": ["requests_per_minute", "waiting_sentences", "documents"],
    "characters today / limit": ["characters_today", "characters_per_day"],
    "in all: requests / characters": ["requests", "characters"],
}
_Id = Annotated[str, typer.Argument(metavar="ID", help="Id of the key, from `kvasir keys list`.")]


@app.command(cls=PlainCommand)
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the key's user, for lists.")],
    file: _File,
    requests_per_minute: _RequestsPerMinute = None,
    characters_per_day: _CharactersPerDay = None,
    waiting_sentences: _WaitingSentences = None,
    documents: _Documents = None,
    join_lines: _JoinLines = None,
    expires_in_days: Annotated[
        float | None,
        typer.Option(min=0.001, max=36500, metavar="DAYS", help="Days until the key expires.", show_default=False),
    ] = None,
) -> None:
    """Create a key and print it. It cannot be shown again; the file, created if missing, has a hash of it only."""
    expires = None if expires_in_days is None else datetime.now(UTC) + timedelta(days=expires_in_days)
    given = (requests_per_minute, characters_per_day, waiting_sentences, documents, join_lines)
    limits = KeyLimits(*(None if not limit else int(limit) for limit in given))
    with one_line_errors():
        key, text = KeyFile(file).add(name, limits, expires)
    typer.echo(f"key {key.id} for {name}; keep it, it is not shown again:", err=True)
    typer.echo(text)


@app.command("list", cls=PlainCommand)
def list_keys(
    file: _File, as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False
) -> None:
    """List keys with their limits and usage."""
    with one_line_errors():
        keys = _existing(file)
    today, in_all = keys.usage(datetime.now(UTC).date().isoformat()), keys.usage()
    rows = [_row(key, today.get(key.id, Usage()), in_all.get(key.id, Usage())) for key in keys.all().values()]
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row, ensure_ascii=False))
        return
    from rich.console import Console  # every command would pay for the import
    from rich.table import Table

    table = Table(box=None)
    for name, columns in _TABLE.items():
        table.add_column(name, no_wrap="id" in columns, justify="left" if len(columns) == 1 else "right")
    for row in rows:
        shown = ([row[column] for column in columns] for columns in _TABLE.values())
        table.add_row(*(" / ".join("-" if value is None else str(value) for value in values) for values in shown))
    Console().print(table)


@app.command(cls=PlainCommand)
def revoke(key_id: _Id, file: _File) -> None:
    """Revoke a key for good."""
    with one_line_errors():
        key = _existing(file).revoke(key_id)
    typer.echo(f"key {key.id} of {key.name} is revoked")


@app.command(cls=PlainCommand)
def limit(
    key_id: _Id,
    file: _File,
    requests_per_minute: _RequestsPerMinute = None,
    characters_per_day: _CharactersPerDay = None,
    waiting_sentences: _WaitingSentences = None,
    documents: _Documents = None,
    join_lines: _JoinLines = None,
) -> None:
    """Change limits of a key; those not given stay."""
    given = zip(
        LIMITS, (requests_per_minute, characters_per_day, waiting_sentences, documents, join_lines), strict=True
    )
    changes = {name: int(value) or None for name, value in given if value is not None}
    with one_line_errors():
        if not changes:
            raise ValueError("give a limit to change, such as --requests-per-minute")
        key = _existing(file).limit(key_id, changes)
    limits = [
        f"{'no limit of' if value is None else value} {name.replace('_', ' ')}"
        for name, value in asdict(key.limits).items()
        if name != "join_lines"
    ]
    limits += ["lines are joined"] * bool(key.limits.join_lines)
    typer.echo(f"key {key.id} of {key.name}: {', '.join(limits)}")


def _existing(file: Path) -> KeyFile:
    if not file.is_file():
        raise ValueError(f"{file} does not exist; `kvasir keys add NAME --file {file}` creates it")
    return KeyFile(file)


def _row(key: ApiKey, today: Usage, in_all: Usage) -> dict[str, str | int | None]:
    is_valid = key.is_valid(datetime.now(UTC))
    return {
        "id": key.id,
        "name": key.name,
        "status": "valid" if is_valid else "expired" if key.revoked is None else "revoked",
        "created": key.created.date().isoformat(),
        "expires": None if key.expires is None else key.expires.date().isoformat(),
        **asdict(key.limits),
        "requests_today": today.requests,
        "characters_today": today.characters,
        "requests": in_all.requests,
        "characters": in_all.characters,
    }
