"""Texts of the page's interface, read from its modules."""

import json

from server.http.page.routes import FOLDER

Texts = dict[str, str | dict[str, str]]  # by key; a text with a count has one for each plural form


def texts_of(language: str) -> Texts:
    """Return the texts in one language."""
    module = (FOLDER / f"texts_{language}.js").read_text(encoding="utf-8")
    content = module[module.index("{") : module.rindex("}")].rstrip().removesuffix(",") + "}"
    texts: Texts = json.loads(content)
    return texts
