"""Languages as Google writes them."""

from server.text.language_tags import match_language

_CODE_OF_TAG = {"zh-Hans": "zh-CN", "zh-Hant": "zh-TW", "he": "iw", "jv": "jw", "fil": "tl", "nb": "no"}


def google_code(tag: str) -> str:
    """Return Google's code for a language of a model."""
    found = match_language(tag, list(_CODE_OF_TAG))
    return tag.replace("_", "-") if found is None else _CODE_OF_TAG[found]
