"""The main path of a request fits one screen: a method of few lines that calls a few stages."""

import ast

import pytest

from tests.architecture.project_files import ROOT, syntax_tree

MAX_LINES = 30
MAX_CALLS = 5
MAX_STAGES = 5


@pytest.mark.parametrize(("path", "class_name", "method_name"), [("server/engine/engine.py", "Engine", "step")])
def test_the_main_path_fits_one_screen(path: str, class_name: str, method_name: str) -> None:
    method = _method(path, class_name, method_name)
    assert method.end_lineno is not None
    num_lines = method.end_lineno - method.lineno + 1
    calls = [ast.unparse(node.func) for node in ast.walk(method) if isinstance(node, ast.Call)]
    assert num_lines <= MAX_LINES, f"{class_name}.{method_name} has {num_lines} lines"
    assert 1 < len(calls) <= MAX_CALLS, f"{class_name}.{method_name} calls {calls}"


@pytest.mark.parametrize(("module", "name"), [("pipeline", "translate")])
def test_the_text_pipeline_fits_one_screen(module: str, name: str) -> None:
    method = _method(f"server/translation/{module}.py", module.capitalize(), name)
    assert method.end_lineno is not None
    assert method.end_lineno - method.lineno + 1 <= MAX_LINES
    stages = [ast.unparse(node.value) for node in ast.walk(method) if isinstance(node, ast.Await)]
    assert 1 < len(stages) <= MAX_STAGES, f"{module}: {name} awaits {stages}"


def _method(path: str, class_name: str, method_name: str) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """Return the definition of a method; the test fails if there is not exactly one."""
    tree = syntax_tree((ROOT / path).read_text(encoding="utf-8"))
    [method] = [
        node
        for outer in tree.body
        if isinstance(outer, ast.ClassDef) and outer.name == class_name
        for node in outer.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == method_name
    ]
    return method
