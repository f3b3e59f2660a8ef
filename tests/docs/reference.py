"""Reference pages made of the program: `python -m tests.docs.reference` writes them again, as `make docs` does."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from server.interface.decoding_options import DecodingOptions
from server.interface.option_table import options_page
from server.operations.metrics import Metrics
from server.operations.settings import ENVIRONMENT_PREFIX, Settings
from tests.architecture.project_files import ROOT
from tests.docs.models_table import models_table

DOCS = ROOT / "docs"


def metrics_table() -> str:
    """Return every metric of a server as a Markdown table, in the order of `/metrics`."""
    metrics = Metrics()
    metrics.watch([])
    metrics.watch_certificate(lambda: 0)
    lines = ["| metric | type | labels | meaning |", "|---|---|---|---|"]
    registry: CollectorRegistry = metrics._registry
    for collector in registry._collector_to_names:
        [family] = collector.describe() if isinstance(collector, MetricWrapperBase) else collector.collect()
        name = f"{family.name}_total" if family.type == "counter" else family.name
        # prometheus_client has no public access to names of labels before their first values.
        label_names = collector._labelnames if isinstance(collector, MetricWrapperBase) else ()
        labels = ", ".join(f"`{label}`" for label in label_names)
        lines.append(f"| `{name}` | {family.type} | {labels} | {family.documentation} |")
    return "\n".join(lines) + "\n"


def settings_table() -> str:
    """Return the settings of `kvasir serve` as a Markdown table."""
    lines = ["| flag | environment variable | default | range | description |", "|---|---|---|---|---|"]
    for name, field in Settings.model_fields.items():
        flag = f"`--{name.replace('_', '-')}`"
        variable = f"`{ENVIRONMENT_PREFIX}{name.upper()}`"
        lines.append(f"| {flag} | {variable} | {_default(name)} | {_range(field.metadata)} | {field.description} |")
    return "\n".join(lines) + "\n"


def _default(name: str) -> str:
    if name == "threads":
        return "usable processors"
    value = Settings.model_fields[name].default
    if name == "model":
        return "`models/en-de`"
    if name == "protocols":
        return f"`{','.join(value)}`"
    return "unset" if value in (None, []) else f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _range(constraints: Sequence[object]) -> str:
    lower = next((f"from {c.ge}" for c in constraints if hasattr(c, "ge")), "")
    lower = lower or next((f"above {c.gt}" for c in constraints if hasattr(c, "gt")), "")
    upper = next((f"to {c.le}" for c in constraints if hasattr(c, "le")), "")
    return f"{lower} {upper}".strip()


def _with_table(page: Path, table: str) -> str:
    """Return the text of a page with `table` in place of its table of the same heading."""
    heading = re.escape(table.splitlines()[0])
    written, count = re.subn(rf"^{heading}\n(?:\|.*\n)*", lambda _: table, page.read_text("utf-8"), flags=re.MULTILINE)
    assert count == 1, f"{page.name} must have one table of this heading: {table.splitlines()[0]}"
    return written


PAGES: Mapping[Path, Callable[[], str]] = {
    DOCS / "options.md": partial(options_page, DecodingOptions),
    DOCS / "settings.md": lambda: _with_table(DOCS / "settings.md", settings_table()),
    DOCS / "metrics.md": lambda: _with_table(DOCS / "metrics.md", metrics_table()),
    DOCS / "models.md": lambda: _with_table(DOCS / "models.md", models_table()),
}


if __name__ == "__main__":
    for page, text in PAGES.items():
        page.write_text(text(), encoding="utf-8")
