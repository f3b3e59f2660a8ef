"""Table of the settings in `docs/settings.md`. `python -m tests.docs.settings_page` writes the page again."""

from server.operations.settings_table import settings_table
from tests.architecture.project_files import ROOT

PAGE = ROOT / "docs" / "settings.md"
_MARK = "<!-- settings -->\n"

if __name__ == "__main__":
    before, mark, _ = PAGE.read_text(encoding="utf-8").partition(_MARK)
    assert mark, f"{PAGE.name} must have the line {_MARK}"
    PAGE.write_text(f"{before}{mark}{settings_table()}\n", encoding="utf-8")
