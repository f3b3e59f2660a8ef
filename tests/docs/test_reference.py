"""The reference pages describe the program as it is."""

import re
from pathlib import Path

import pytest

from tests.docs.models_table import CHECKPOINTS, bundle_bytes, num_parameters, products_of_token
from tests.docs.reference import DOCS, PAGES, metrics_table


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_reference_page_is_up_to_date(page: Path) -> None:
    assert page.read_text("utf-8") == PAGES[page](), "run `make docs`"


def test_the_expressions_use_metrics_that_exist() -> None:
    page = (DOCS / "metrics.md").read_text("utf-8")
    named = set(re.findall(r"\bkvasir_[a-z_]+\b", page.replace(metrics_table(), "")))
    known = set(re.findall(r"`(kvasir_\w+)` \| (\w+)", metrics_table()))
    series = {name for name, _ in known}
    series |= {f"{name}_{part}" for name, kind in known if kind == "histogram" for part in ("bucket", "sum", "count")}
    assert named
    assert not named - series


@pytest.mark.parametrize(
    ("name", "millions"),
    [("nllb-200-distilled-600M", 615), ("m2m100_418M", 484), ("t5-base", 223), ("flan-t5-base", 248)],
)
def test_a_checkpoint_has_its_published_number_of_parameters(name: str, millions: int) -> None:
    (listed,) = (each for each in CHECKPOINTS if each.name.endswith(f"/{name}"))
    assert num_parameters(listed.config) / 1e6 == pytest.approx(millions, rel=0.01)
    assert products_of_token(listed.config) < bundle_bytes(listed.config, 1) < bundle_bytes(listed.config, 4) / 3.9
