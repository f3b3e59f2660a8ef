"""The standard library's `re` matches possessive groups wrongly up to Python 3.11.4; such patterns are `regex` ones."""

import ast
import re
from collections.abc import Iterator

from tests.architecture.project_files import project_files, syntax_tree, text_of

# python/cpython#106052: a group that can backtrack may fail to match, or match elsewhere.
POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{\d*,?\d*\})\+|\(\?>")


def test_no_pattern_of_the_standard_library_has_a_possessive_group() -> None:
    paths = [path for path in project_files() if path.endswith(".py") and not __file__.endswith(path)]
    assert not [f"{path}: {each}" for path in paths for each in _found(text_of(path))]


def _found(source: str) -> Iterator[str]:
    """Yield the strings with a possessive group that are, or may be, patterns of the standard library."""
    tree = syntax_tree(source)
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    if "re" not in imported:
        return
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re."))
    for place in calls if "regex" in imported else (tree,):
        for node in ast.walk(place):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and POSSESSIVE_GROUP.search(node.value):
                yield node.value
