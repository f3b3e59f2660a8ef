"""The page of metrics describes the metrics of the server."""

import re

import pytest

from tests.docs.metrics_page import PAGE, metrics_table, page_with


def test_the_page_contains_the_table_of_metrics() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page_with(metrics_table(), page) == page, "run `make reference`"


def test_the_table_has_names_types_and_labels() -> None:
    table = metrics_table()
    assert "| `kvasir_requests_total` | counter | `endpoint`, `status`, `outcome` | " in table
    assert "| `kvasir_request_seconds` | histogram | `endpoint` | " in table
    assert "| `kvasir_documents_held` | gauge |  | " in table


def test_the_expressions_use_metrics_that_exist() -> None:
    page = PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"\bkvasir_[a-z_]+\b", page.replace(metrics_table(), "")))
    known = set(re.findall(r"`(kvasir_\w+)` \| (\w+)", metrics_table()))
    series = {name for name, _ in known}
    series |= {f"{name}_{part}" for name, kind in known if kind == "histogram" for part in ("bucket", "sum", "count")}
    assert named
    assert not named - series


def test_a_page_without_a_table_is_reported() -> None:
    with pytest.raises(AssertionError, match="one table"):
        page_with(metrics_table(), "# Metrics\n")
