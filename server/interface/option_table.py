"""The reference page of the decoding options, printed from their fields: `make docs` writes it to docs/options.md."""

from pydantic.fields import FieldInfo

from server.interface.decoding_options import DetailOptions
from server.interface.option_metadata import BEAM, SAMPLING, Applies


def bounds(field: FieldInfo) -> tuple[float | None, float | None]:
    """Return the smallest and the largest value of a field; None where there is none."""
    lower = next((each.ge for each in field.metadata if hasattr(each, "ge")), None)
    upper = next((each.le for each in field.metadata if hasattr(each, "le")), None)
    return lower, upper


def section(name: str, field: FieldInfo) -> str:
    """Return the heading that an option belongs under."""
    applicable = next((each for each in field.metadata if isinstance(each, Applies)), None)
    if applicable is not None and applicable.modes & BEAM:
        return "Beam search"
    if applicable is not None and applicable.modes & SAMPLING:
        return "Sampling"
    return "Scores and details of tokens" if name in DetailOptions.model_fields else "All searches"
