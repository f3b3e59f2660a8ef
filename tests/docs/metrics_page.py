"""Table of the metrics in `docs/metrics.md`. `python -m tests.docs.metrics_page` writes the page again."""

import re

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from server.operations.metrics import Metrics
from tests.architecture.project_files import ROOT

PAGE = ROOT / "docs" / "metrics.md"
_TABLE = re.compile(r"^\| metric \|.*?(?=^$)", re.MULTILINE | re.DOTALL)


def metrics_table() -> str:
    """Return every metric of a server as a Markdown table, in the order of `/metrics`."""
    metrics = Metrics()
    metrics.watch([])
    metrics.watch_documents(lambda: 0)
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


def page_with(table: str, page: str) -> str:
    """Return `page` with `table` in place of its table of metrics."""
    written, count = _TABLE.subn(lambda _: table, page)
    assert count == 1, f"{PAGE.name} must have one table of metrics"
    return written


if __name__ == "__main__":
    PAGE.write_text(page_with(metrics_table(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
