"""The test files that test a module, found by their places and imports."""

import ast
import functools
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_FEW = 12  # files that import a module


def tests_of(file: str, listed: Iterable[str]) -> list[str]:
    """Return the test files of a module, the likeliest first.

    Its own test file, the listed ones, those that import it, those of its folder if it has none of its own, and those
    of the modules that import it.
    """
    path = Path(file)
    own = _own_tests(path)
    found = [*own, *map(Path, listed), *(test for test in _importers(path, "tests") if _is_test(test))]
    if not own:
        found += sorted((Path("tests") / path.parent).glob("test_*.py"))
    found += [test for module in _importers(path, ".") for test in _own_tests(module)]
    return [str(each) for each in dict.fromkeys(found) if (ROOT / each).is_file()]


def _own_tests(module: Path) -> list[Path]:
    own = Path("tests") / module.parent / f"test_{module.name}"
    return [own] if (ROOT / own).is_file() else []


def _is_test(path: Path) -> bool:
    return path.name.startswith("test_")


def _importers(module: Path, root: str) -> list[Path]:
    """Return the files below `root`, in the module's package, that import a module, if they are few.

    What half of the project imports is tested by none of it in particular.
    """
    name = ".".join(module.with_suffix("").parts)
    files = sorted((ROOT / root / module.parts[0]).rglob("*.py"))
    found = [each.relative_to(ROOT) for each in files if name in _imported_names(each)]
    return found if len(found) <= _FEW else []


@functools.cache
def _imported_names(file: Path) -> frozenset[str]:
    nodes = list(ast.walk(ast.parse(file.read_bytes())))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(names)
