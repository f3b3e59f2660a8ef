"""The command `kvasir top`: load of a running server in a terminal, by model and by key."""

import time
from contextlib import suppress
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from server.cli.one_line_errors import one_line_errors
from server.cli.top_samples import AdminConnection, KeyLoad, ModelLoad, Sample, quantile, read_sample

_BAR_CELLS = 12
_MEGABYTE = 1_000_000


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
            Console().print(screen(before, read_sample(connection.get)))
            return
        with Live(screen(before, before), screen=True, auto_refresh=False) as live:
            while True:
                time.sleep(interval)
                after = read_sample(connection.get)
                live.update(screen(before, after), refresh=True)
                before = after


def screen(before: Sample, after: Sample) -> RenderableType:
    """Return the tables of the time between two samples."""
    tables: list[RenderableType] = [_heading(before, after), _model_table(before, after)]
    if after.keys:
        tables.append(_key_table(before, after))
    return Group(*tables)


def _heading(before: Sample, after: Sample) -> Text:
    seconds = _seconds(before, after)
    rates = {outcome: (count - before.outcomes.get(outcome, 0)) / seconds for outcome, count in after.outcomes.items()}
    median, high = (quantile(share, before.latencies, after.latencies) for share in (0.5, 0.99))
    parts = [
        f"up {_duration(after.uptime_seconds)}",
        f"{after.requests_in_flight} in flight",
        *(f"{rate:.1f} {outcome}/s" for outcome, rate in sorted(rates.items()) if rate),
        f"p50 {_milliseconds(median)}",
        f"p99 {_milliseconds(high)}",
        f"cache {after.cached_share:.0%}",
    ]
    text = Text("  ".join(parts))
    if after.draining:
        text.append("  DRAINING", style="bold red")
    return text


def _model_table(before: Sample, after: Sample) -> Table:
    table = Table("model", "rows", "", "running", "queue", "requests/s", "tokens in/s", "tokens out/s", "memory")
    for column in table.columns[3:]:
        column.justify = "right"
    earlier = {model.name: model for model in before.models}
    seconds = _seconds(before, after)
    for model in after.models:
        then = earlier.get(model.name, ModelLoad(model.name))
        table.add_row(
            model.name,
            _bar(model.rows_in_use, model.rows),
            f"{model.rows_in_use}/{model.rows}" if model.is_loaded else "unloaded",
            str(model.running),
            str(model.waiting),
            f"{(model.requests - then.requests) / seconds:.1f}",
            f"{(model.source_tokens - then.source_tokens) / seconds:.0f}",
            f"{(model.target_tokens - then.target_tokens) / seconds:.0f}",
            f"{model.memory_bytes / _MEGABYTE:.0f} MB" if model.memory_bytes else "",
        )
    return table


def _key_table(before: Sample, after: Sample) -> Table:
    table = Table("key", "name", "requests/s", "rejected/s", "tokens out/s", "requests", "characters")
    for column in table.columns[2:]:
        column.justify = "right"
    earlier = {key.id: key for key in before.keys}
    seconds = _seconds(before, after)
    for key in sorted(after.keys, key=lambda each: -each.target_tokens):
        then = earlier.get(key.id, KeyLoad(key.id, key.name, 0, 0, 0, 0))
        table.add_row(
            key.id,
            Text(key.name),
            f"{(key.requests - then.requests) / seconds:.1f}",
            f"{(key.rejected - then.rejected) / seconds:.1f}",
            f"{(key.target_tokens - then.target_tokens) / seconds:.0f}",
            str(key.requests),
            str(key.characters),
        )
    return table


def _seconds(before: Sample, after: Sample) -> float:
    return max(after.seconds - before.seconds, 1e-3)


def _bar(value: int, maximum: int) -> Text:
    filled = round(_BAR_CELLS * value / maximum) if maximum else 0
    return Text("█" * filled + "·" * (_BAR_CELLS - filled), style="green" if filled < _BAR_CELLS else "yellow")


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"≤ {seconds * 1000:.0f} ms"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
