"""Help pages of the commands: plain text, sections, and words for types and ranges that are no Python."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import typer
from typer.core import TyperCommand, TyperGroup

CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_SECTION = "Options"
_WORDS = {"str": "TEXT", "int": "NUMBER", "float": "NUMBER", "path": "PATH", "Path": "PATH"}
_TYPE = re.compile(r" <(?:list\[)?([^<>\[\]]+?)(?: range)?\]?>")
_NUMBER = r"(-?[0-9.]+)"
_BETWEEN = re.compile(rf"{_NUMBER}<=x<={_NUMBER}")
_AT_LEAST = re.compile(rf"x>={_NUMBER}")
_AT_MOST = re.compile(rf"x<={_NUMBER}")


class Parameter(Protocol):
    """Parameter of a command, as far as its help reads it."""

    @property
    def param_type_name(self) -> str:
        """Kind of the parameter: argument or option."""
        ...

    def get_help_record(self, ctx: typer.Context) -> tuple[str, str] | None:
        """Return the two columns of the help."""
        ...


class HelpFormatter(Protocol):
    """Formatter of click, of which typer has a private copy, as far as the help uses it."""

    def section(self, name: str) -> AbstractContextManager[None]:
        """Write a heading, and indent what is written within the block."""
        ...

    def write_dl(self, rows: Sequence[tuple[str, str]]) -> None:
        """Write two columns."""
        ...


class PlainCommand(TyperCommand):
    """A command whose help lists its options by section."""

    def collect_usage_pieces(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """Return the usage without the braces around arguments."""
        return [re.sub(r"\{(.*)\}", r"\1", piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: typer.Context, formatter: HelpFormatter) -> None:  # type: ignore[override]
        """Write the arguments, and the options of each section."""
        _write_sections(self.get_params(ctx), ctx, formatter)


class PlainGroup(TyperGroup):
    """A command with subcommands, with the help of `PlainCommand`."""

    def format_options(self, ctx: typer.Context, formatter: HelpFormatter) -> None:  # type: ignore[override]
        """Write the options and the subcommands."""
        _write_sections(self.get_params(ctx), ctx, formatter)
        self.format_commands(ctx, formatter)  # type: ignore[arg-type]


class ForwardingCommand(TyperCommand):
    """A command that forwards its arguments to a parser, which is imported when the command runs."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Keep the arguments, `--help` and `--` included."""
        ctx.args = list(args)
        return ctx.args


def plain_app(help_text: str) -> typer.Typer:
    """Return an application whose help pages and usage errors are plain text."""
    return typer.Typer(
        help=help_text,
        cls=PlainGroup,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings=CONTEXT_SETTINGS,
    )


def run_command(command: Callable[..., None], arguments: Sequence[str], name: str) -> None:
    """Run a function as a command with these arguments; its parameters are the flags. Exits at its end."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command(cls=PlainCommand, context_settings=CONTEXT_SETTINGS)(command)
    app(list(arguments), prog_name=name)


def in_words(left: str, right: str) -> tuple[str, str]:
    """Return the two columns of a flag with its type and range in words: `--threads NUMBER`, `[1 to 8]`."""
    left = _TYPE.sub(lambda found: " " + _WORDS.get(found[1], found[1]), left)
    right = _BETWEEN.sub(lambda found: f"{_plain(found[1])} to {_plain(found[2])}", right)
    right = _AT_LEAST.sub(lambda found: f"at least {_plain(found[1])}", right)
    return left, _AT_MOST.sub(lambda found: f"at most {_plain(found[1])}", right)


def _plain(number: str) -> str:
    return number.removesuffix(".0")


def _write_sections(params: Sequence[Parameter], ctx: typer.Context, formatter: HelpFormatter) -> None:
    sections: dict[str, list[tuple[str, str]]] = {}
    for title, record in _records(params, ctx):
        sections.setdefault(title, []).append(record)
    for title, records in sections.items():
        with formatter.section(title):
            formatter.write_dl(records)


def _records(params: Sequence[Parameter], ctx: typer.Context) -> Iterator[tuple[str, tuple[str, str]]]:
    for param in params:
        record = param.get_help_record(ctx)
        if record is None:
            continue
        left, right = in_words(*record)
        if param.param_type_name == "argument":
            yield "Arguments", (left.partition(" ")[0], right)  # the name states the type
        else:
            yield getattr(param, "rich_help_panel", None) or _SECTION, (left, right)
