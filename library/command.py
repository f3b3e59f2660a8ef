"""The commands `kvasir pull`, `kvasir models` and `kvasir remove`, and the names that `kvasir serve` accepts."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import typer

from bundle.manifest import BundleConfig
from library.card import listed
from library.home import Entry, Home
from library.names import parse_name
from library.progress import progress_on_stderr
from library.pull import PullOptions, pull

_MEGABYTE = 1e6


def _report(message: str) -> None:
    typer.echo(message, err=True)


def pull_models(names: Sequence[str], options: PullOptions) -> list[Path]:
    """Return the bundles of these models, in their order; download and convert those that the cache lacks."""
    home = Home.of(os.environ)
    with progress_on_stderr(_report) as progress:
        folders = [pull(name, options, home, _report, progress) for name in names]
    for name, folder in zip(names, folders, strict=True):
        _report(f"{name}: {folder}")
    return folders


def list_models(*, as_json: bool) -> None:
    """Write the models of the cache to standard output, as a table or as JSON."""
    entries = Home.of(os.environ).entries()
    if as_json:
        typer.echo(json.dumps([_as_json(entry) for entry in entries], indent=2))
        return
    if not entries:
        typer.echo("no models; `kvasir pull en-fr` downloads one", err=True)
        return
    rows = [("NAME", "SIZE", "PRECISION", "LICENCE", "LANGUAGES", "FROM")]
    for entry in entries:
        precision = entry.config.precision if entry.config else "damaged"
        languages = _languages(entry.config) if entry.config else "-"
        size = f"{entry.size / _MEGABYTE:.1f} MB"
        rows.append((entry.origin.name, size, precision, entry.origin.licence or "-", languages, entry.origin.address))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for entry in entries:
        if entry.problem:
            typer.echo(f"{entry.origin.name}: {entry.problem}", err=True)


def remove_models(names: Sequence[str]) -> None:
    """Delete models in every precision. Raises ValueError, before anything is deleted, for one that is not there."""
    home = Home.of(os.environ)
    chosen: dict[Path, Entry] = {}
    for name in names:
        found = [entry for entry in home.entries() if name in _names_of(entry) or _text_of(name) == entry.origin.name]
        if not found:
            available = ", ".join(entry.origin.name for entry in home.entries())
            raise ValueError(f"{name} is not in {home.models}. Available: {available or 'none'}")
        chosen |= {entry.folder: entry for entry in found}
    for entry in chosen.values():
        with home.lock(entry.folder, _report):
            size = entry.size
            home.remove(entry.folder)
        typer.echo(f"removed {entry.origin.name} ({size / _MEGABYTE:.1f} MB)")


def _names_of(entry: Entry) -> tuple[str, ...]:
    return entry.origin.name, entry.folder.name, *((entry.config.name,) if entry.config else ())


def _text_of(name: str) -> str | None:
    try:
        model = parse_name(name)
    except ValueError:
        return None
    return str(Path(model.text).resolve()) if model.kind == "path" else model.text


def _languages(config: BundleConfig) -> str:
    return f"{listed(config.source_languages)} > {listed(config.target_languages)}"


def _as_json(entry: Entry) -> dict[str, object]:
    config = entry.config
    described: dict[str, object] = {
        "name": entry.origin.name,
        "folder": str(entry.folder),
        "bytes": entry.size,
        "licence": entry.origin.licence,
        "from": entry.origin.address,
    }
    if config is None:
        return described | {"problem": entry.problem}
    return described | {
        "precision": config.precision,
        "source_languages": list(config.source_languages),
        "target_languages": list(config.target_languages),
        "parameters": config.provenance.num_parameters,
    }
