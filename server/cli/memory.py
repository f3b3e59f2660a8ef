"""The command `kvasir memory`: import, export, list, delete and back up translation memories."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from server.cli.help_pages import PlainCommand, plain_app
from server.cli.one_line_errors import one_line_errors

app = plain_app("Import, export, list, delete and back up translation memories. A running server sees changes at once.")

_Id = Annotated[str, typer.Argument(metavar="ID", help="Id of the memory, from `kvasir memory list`.")]
_File = Annotated[
    Path,
    typer.Option(
        envvar="KVASIR_MEMORY_FILE", metavar="FILE", help="SQLite file of memories: `--memory-file` of the server."
    ),
]
_Owner = Annotated[str, typer.Option(metavar="ID", help="Id of an API key; by default all keys read the memory.")]
_Language = typer.Option(metavar="LANGUAGE", help="Language, where the file does not name it (.tsv, .po).")


@app.command("import", cls=PlainCommand)
def import_memory(
    source_file: Annotated[Path, typer.Argument(metavar="INPUT", help="File: .tmx, .tsv or .po.")],
    file: _File,
    name: Annotated[str | None, typer.Option(help="Name of the memory; by default the file's.")] = None,
    source: Annotated[str | None, _Language] = None,
    target: Annotated[str | None, _Language] = None,
    owner: _Owner = "",
) -> None:
    """Import a file as a new translation memory."""
    from server.memory.jobs import import_file
    from server.memory.store import MemoryStore

    with one_line_errors():
        memory, skipped = import_file(MemoryStore(file), source_file, owner, name, source, target)
    typer.echo(f"{memory.name} has {memory.num_segments} segments, id {memory.id}; {skipped} were skipped")


@app.command("export", cls=PlainCommand)
def export_memory(
    memory_id: _Id,
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="File to write: .tmx, .tsv or .po.")],
    file: _File,
    target: Annotated[
        str | None, typer.Option(metavar="LANGUAGE", help="One of several languages; .tsv and .po have one only.")
    ] = None,
    owner: _Owner = "",
) -> None:
    """Write a translation memory to a file."""
    from server.memory.files import kind_of, write_segments
    from server.memory.jobs import all_segments
    from server.memory.store import MemoryStore
    from server.text.language_tags import match_language

    with one_line_errors():
        kind, store = kind_of(output.name), MemoryStore(_existing(file))
        memory = store.memory(owner, memory_id)
        targets = memory.targets if target is None else tuple(filter(None, [match_language(target, memory.targets)]))
        if not targets or (len(targets) > 1 and kind != "tmx"):
            raise ValueError(
                f"{output.name} can have one of these languages: {', '.join(memory.targets)}; set --target"
            )
        chosen = [each for each in all_segments(store, memory) if each.language in targets]
        with output.open("w", encoding="utf-8") as written:
            write_segments(kind, replace(memory, targets=targets), chosen, written)
    typer.echo(f"{len(chosen)} segments are in {output}")


@app.command("list", cls=PlainCommand)
def list_memories(file: _File, owner: _Owner = "") -> None:
    """List the translation memories that an API key sees."""
    from server.memory.store import MemoryStore

    with one_line_errors():
        found, _ = MemoryStore(_existing(file)).memories(owner, 0, 1000)
    for each in found:
        typer.echo(f"{each.id}  {each.source} to {', '.join(each.targets)}  {each.num_segments:>9}  {each.name}")


@app.command("delete", cls=PlainCommand)
def delete_memory(memory_id: _Id, file: _File, owner: _Owner = "") -> None:
    """Delete a translation memory."""
    from server.memory.jobs import Jobs
    from server.memory.store import MemoryStore

    with one_line_errors():
        store = MemoryStore(_existing(file))
        store.delete(owner, memory_id)
        Jobs(store).run()
    typer.echo(f"{memory_id} is deleted")


@app.command(cls=PlainCommand)
def backup(target: Annotated[Path, typer.Argument(metavar="COPY", help="File to write.")], file: _File) -> None:
    """Copy the file of memories while servers use it."""
    from server.memory.store import backup as copy

    with one_line_errors():
        copy(_existing(file), target)
    typer.echo(f"{file} is copied to {target}")


def _existing(file: Path) -> Path:
    if not file.is_file():
        raise ValueError(f"{file} does not exist; `kvasir memory import INPUT --file {file}` creates it")
    return file
