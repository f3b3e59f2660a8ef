"""Numbers as text: significant digits only, and a dash for unknown values."""

NOTHING = "–"

# Marks of a comparison.
BETTER = "▲"
WORSE = "▼"
SAME = "≈"


def milliseconds(value: float | None) -> str:
    """Return three digits below 100 ms, whole milliseconds above."""
    if value is None:
        return NOTHING
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def rate(value: float | None) -> str:
    """Return a rate per second."""
    if value is None:
        return NOTHING
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def percent(share: float | None) -> str:
    """Return a share as a percentage. Only 1 is 100 %, and only 0 is 0 %."""
    if share is None:
        return NOTHING
    if not 0 < share < 1:
        return f"{share:.0%}"
    return f"{min(max(100 * share, 0.1), 99.9):.1f}".removesuffix(".0") + "%"


def count(value: int | None) -> str:
    """Return a count with separators of thousands."""
    return NOTHING if value is None else f"{value:,}"
