"""Origins of web pages and browser extensions that may call the API."""

import re
from collections.abc import Sequence


def origin_pattern(origins: Sequence[str]) -> re.Pattern[str]:
    """Return the pattern of origins that match one of `origins`. `*` stands for any part of a host name.

    `moz-extension://*` is every extension of Firefox, which gives each installation another name.
    """
    return re.compile("|".join(re.escape(origin).replace(r"\*", "[^/]*") for origin in origins) or "(?!)")
