"""Progress of downloads on standard error: a bar on a terminal, otherwise a line for each quarter of a large file."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from model.checkpoints.download import Progress

_MIN_BYTES_OF_LINES = 20_000_000


@contextmanager
def progress_on_stderr(report: Callable[[str], None]) -> Iterator[Progress]:
    """Yield the progress of several files. `report` receives the lines where standard error is not a terminal."""
    if not sys.stderr.isatty():
        yield _Quarters(report)
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    bars = Bars(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
    tasks: dict[str, object] = {}

    def advance(name: str, received: int, size: int | None) -> None:
        if name not in tasks:
            tasks[name] = bars.add_task(name, total=size)
        bars.update(tasks[name], completed=received, total=size)  # type: ignore[arg-type]  # an id of `tasks`

    with bars:
        yield advance


class _Quarters:
    """Progress as lines."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._reached: dict[str, int] = {}

    def __call__(self, name: str, received: int, size: int | None) -> None:
        if size is None or size < _MIN_BYTES_OF_LINES:
            return
        quarter = 4 * received // size
        if quarter > self._reached.get(name, 0):
            self._reached[name] = quarter
            self._report(f"{name}: {25 * quarter} % of {size / 1e6:.1f} MB")
