"""Comparison of JSON output with the example in the documentation."""

import math

# Examples have three decimals; arithmetic differs between processors by less than one unit of the last.
MAX_DIFFERENCE = 0.0015


def json_differences(example: object, actual: object, shortened: bool = False, path: str = "$") -> list[str]:
    """Return where `actual` differs from `example`, as JSON paths with both values.

    If `shortened`, objects may have further fields. Numbers may differ by rounding.
    """
    if isinstance(example, dict) and isinstance(actual, dict):
        missing = [f"{path}.{key}: missing" for key in example if key not in actual]
        further = [] if shortened else [f"{path}.{key}: not in the example" for key in actual if key not in example]
        shared = [key for key in example if key in actual]
        below = (json_differences(example[key], actual[key], shortened, f"{path}.{key}") for key in shared)
        return missing + further + [difference for found in below for difference in found]
    if isinstance(example, list) and isinstance(actual, list) and len(example) == len(actual):
        pairs = enumerate(zip(example, actual, strict=True))
        below = (json_differences(*pair, shortened, f"{path}[{index}]") for index, pair in pairs)
        return [difference for found in below for difference in found]
    if isinstance(example, float) and isinstance(actual, int | float):
        is_close = math.isclose(example, actual, rel_tol=0, abs_tol=MAX_DIFFERENCE)
        return [] if is_close else [_both(path, example, actual)]
    return [] if example == actual and type(example) is type(actual) else [_both(path, example, actual)]


def _both(path: str, example: object, actual: object) -> str:
    return f"{path}: {actual!r} instead of {example!r}"
