"""The command `kvasir top`: load of a running server in a terminal, by model and by key."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

import typer
from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from server.cli.one_line_errors import one_line_errors
from server.cli.top_samples import AdminConnection, KeyLoad, ModelLoad, Sample, quantile, read_sample

_BAR_CELLS = 12
_MEGABYTE = 1_000_000
_WITHOUT_BARS, _WITHOUT_DETAILS = 100, 64  # columns of a terminal that leave too little for names


def top(
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="Port for administration: http://HOST:PORT or unix:PATH.")
    ] = "http://127.0.0.1:9000",
    key: Annotated[
        str | None, typer.Option(envvar="KVASIR_ADMIN_KEY", help="Key for administration.", show_default=False)
    ] = None,
    interval: Annotated[float, typer.Option(min=0.1, max=60, help="Seconds between two samples.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Print one table, of one interval, and exit.")] = False,
) -> None:
    """Show rows, queue, tokens a second and latency of a running server, by model and by key. Ctrl-C ends it."""
    with one_line_errors(), suppress(KeyboardInterrupt):
        connection = AdminConnection(address, key)
        before = read_sample(connection.get)
        if once:
            time.sleep(interval)
            Console().print(Screen(before, read_sample(connection.get)))
            return
        with Live(screen=True, auto_refresh=False) as live:
            for shown in screens(before, lambda: read_sample(connection.get), lambda: time.sleep(interval)):
                live.update(shown, refresh=True)


def screens(before: Sample, read: Callable[[], Sample], pause: Callable[[], None]) -> Iterator[RenderableType]:
    """Yield what to show after each pause, without end. While the server does not answer, that is the reason."""
    shown: RenderableType = Screen(before, before)
    while True:
        yield shown
        pause()
        try:
            after = read()
        except OSError as error:
            shown = Text(f"{error}; trying again", style="bold red")
            continue
        is_restarted = after.uptime_seconds < before.uptime_seconds  # its counts have begun again
        shown = Screen(after if is_restarted else before, after)
        before = after


@dataclass(frozen=True, slots=True)
class Screen:
    """The tables of the time between two samples, as wide as the terminal."""

    before: Sample
    after: Sample

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the parts of the screen."""
        yield _heading(self.before, self.after)
        yield _model_table(self.before, self.after, options.max_width)
        if self.after.keys:
            yield _key_table(self.before, self.after, options.max_width)


def _heading(before: Sample, after: Sample) -> Text:
    seconds = _seconds(before, after)
    rates = {outcome: (count - before.outcomes.get(outcome, 0)) / seconds for outcome, count in after.outcomes.items()}
    parts = [
        f"up {_duration(after.uptime_seconds)}",
        f"{after.requests_in_flight} in flight",
        *(f"{rate:.1f} {outcome}/s" for outcome, rate in sorted(rates.items()) if rate),
        f"p50 {_latency(0.5, before, after)}",
        f"p99 {_latency(0.99, before, after)}",
        f"cache {after.cached_share:.0%}",
    ]
    text = Text("  ".join(parts))
    if after.draining:
        text.append("  DRAINING", style="bold red")
    return text


def _model_table(before: Sample, after: Sample, width: int) -> Table:
    columns = ("", "rows", "running", "queue", "requests/s", "tokens\nin/s", "tokens\nout/s", "memory")
    left_out = {""} if width < _WITHOUT_BARS else set()
    if width < _WITHOUT_DETAILS:
        left_out |= {"running", "memory"}
    table = _table("model", *(column for column in columns if column not in left_out))
    earlier = {model.name: model for model in before.models}
    seconds = _seconds(before, after)
    for model in after.models:
        then = earlier.get(model.name, ModelLoad(model.name))
        cells: tuple[str | Text, ...] = (
            _bar(model.rows_in_use, model.rows),
            f"{model.rows_in_use}/{model.rows}" if model.is_loaded else "unloaded",
            str(model.running),
            str(model.waiting),
            f"{(model.requests - then.requests) / seconds:.1f}",
            f"{(model.source_tokens - then.source_tokens) / seconds:.0f}",
            f"{(model.target_tokens - then.target_tokens) / seconds:.0f}",
            f"{model.memory_bytes / _MEGABYTE:.0f} MB" if model.memory_bytes else "",
        )
        kept = (cell for column, cell in zip(columns, cells, strict=True) if column not in left_out)
        table.add_row(Text(model.name), *kept)
    return table


def _table(name: str, *columns: str) -> Table:
    """Return a table whose first column takes the space that the others, which are never cut, leave."""
    table = Table(Column(name, overflow="fold"), box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _key_table(before: Sample, after: Sample, width: int) -> Table:
    columns = ("key", "requests/s", "rejected/s", "tokens\nout/s", "requests", "characters")
    left_out = {"key", "requests"} if width < _WITHOUT_DETAILS else set()
    table = _table("name", *(column for column in columns if column not in left_out))
    earlier = {key.id: key for key in before.keys}
    seconds = _seconds(before, after)
    for key in sorted(after.keys, key=lambda each: -each.target_tokens):
        then = earlier.get(key.id, KeyLoad(key.id, key.name, 0, 0, 0, 0))
        cells = (
            key.id,
            f"{(key.requests - then.requests) / seconds:.1f}",
            f"{(key.rejected - then.rejected) / seconds:.1f}",
            f"{(key.target_tokens - then.target_tokens) / seconds:.0f}",
            str(key.requests),
            str(key.characters),
        )
        kept = (cell for column, cell in zip(columns, cells, strict=True) if column not in left_out)
        table.add_row(Text(key.name), *kept)
    return table


def _seconds(before: Sample, after: Sample) -> float:
    return max(after.seconds - before.seconds, 1e-3)


def _bar(value: int, maximum: int) -> Text:
    filled = round(_BAR_CELLS * value / maximum) if maximum else 0
    return Text("█" * filled + "·" * (_BAR_CELLS - filled), style="green" if filled < _BAR_CELLS else "yellow")


def _latency(share: float, before: Sample, after: Sample) -> str:
    """Return a quantile of the durations of requests, as far as the buckets of the histogram show it."""
    seconds = quantile(share, before.latencies, after.latencies)
    if seconds is None:
        return "-"
    if math.isinf(seconds):  # the last bucket: slower than the bound of the last but one
        return f"> {max((bound for bound in after.latencies if bound < seconds), default=0.0):g} s"
    return f"≤ {seconds * 1000:.0f} ms"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
