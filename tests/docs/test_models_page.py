import pytest

from tests.docs.models_page import (
    CHECKPOINTS,
    PAGE,
    bundle_bytes,
    models_table,
    num_parameters,
    page_with,
    products_of_token,
)


def test_the_page_has_the_table_of_checkpoints() -> None:
    page = PAGE.read_text("utf-8")
    assert page_with(models_table(), page) == page, "run `make reference`"


@pytest.mark.parametrize(
    ("name", "millions"),
    [("nllb-200-distilled-600M", 615), ("m2m100_418M", 484), ("t5-base", 223), ("flan-t5-base", 248)],
)
def test_a_checkpoint_has_its_published_number_of_parameters(name: str, millions: int) -> None:
    (listed,) = (each for each in CHECKPOINTS if each.name.endswith(f"/{name}"))
    assert num_parameters(listed.config) / 1e6 == pytest.approx(millions, rel=0.01)
    assert products_of_token(listed.config) < bundle_bytes(listed.config, 1) < bundle_bytes(listed.config, 4) / 3.9
