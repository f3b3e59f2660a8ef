"""Table of the settings in `docs/settings.md`. `python -m tests.docs.settings_page` writes the page again."""

from collections.abc import Sequence

from server.operations.settings import ENVIRONMENT_PREFIX, Settings
from tests.architecture.project_files import ROOT


def settings_table() -> str:
    """Return the settings as a Markdown table."""
    lines = ["| flag | environment variable | default | range | description |", "|---|---|---|---|---|"]
    for name, field in Settings.model_fields.items():
        flag = f"`--{name.replace('_', '-')}`"
        variable = f"`{ENVIRONMENT_PREFIX}{name.upper()}`"
        lines.append(f"| {flag} | {variable} | {_default(name)} | {_range(field.metadata)} | {field.description} |")
    return "\n".join(lines)


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


PAGE = ROOT / "docs" / "settings.md"
_MARK = "<!-- settings -->\n"

if __name__ == "__main__":
    before, mark, _ = PAGE.read_text(encoding="utf-8").partition(_MARK)
    assert mark, f"{PAGE.name} must have the line {_MARK}"
    PAGE.write_text(f"{before}{mark}{settings_table()}\n", encoding="utf-8")
