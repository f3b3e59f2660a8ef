"""Do the tests notice a wrong program? `python -m tests.mutate server/engine/scheduler.py ...` changes files at random.

Each mutant is one change by an operator of cosmic-ray (a comparison, a number, `and` for `or`, ...), in a copy of the
project. The narrow tests of its file run in a forked process, which has imported the libraries already. Mutants that no
test notices are printed. `pip install -c constraints.txt cosmic-ray==8.7.0` first, and set `OMP_NUM_THREADS=1`.
"""

import argparse
import contextlib
import importlib
import importlib.util
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from tests.narrow_tests import ROOT, tests_of

_OPERATORS = (
    "core/ReplaceComparisonOperator",
    "core/ReplaceTrueWithFalse",
    "core/ReplaceFalseWithTrue",
    "core/ReplaceAndWithOr",
    "core/ReplaceOrWithAnd",
    "core/AddNot",
    "core/ReplaceUnaryOperator_Delete_Not",
    "core/NumberReplacer",
    "core/ReplaceBreakWithContinue",
    "core/ReplaceContinueWithBreak",
    "core/ZeroIterationForLoop",
    "core/ReplaceBinaryOperator_Add_Sub",
    "core/ReplaceBinaryOperator_Sub_Add",
    "core/ReplaceBinaryOperator_Mul_Div",
    "core/ReplaceBinaryOperator_Div_Mul",
    "core/ReplaceBinaryOperator_FloorDiv_Mul",
    "core/ReplaceBinaryOperator_Mod_Add",
)
# Imported before the first fork. ONNX Runtime starts threads when it is imported, which a fork would lose.
_LIBRARIES = (
    *("numpy", "pytest", "pydantic", "fastapi", "starlette.testclient", "regex", "sentencepiece"),
    *("tokenizers", "lxml.etree", "hypothesis", "prometheus_client", "cachetools", "limits", "sentencex", "babel"),
)
_LINKED = ("models/", "docs/")  # read by tests, and not copied
_ENGINE = "tests/server/engine"
_DECODING = f"{_ENGINE}/decoding"
_WORKERS = "tests/server/workers"
_OPTION_TESTS = ("any_options", "beam_search", "constrained", "loop_detection", "native_search", "options")
_HTTP = "tests/server/http"
_FORMATS = "tests/server/documents/formats"
_READERS = "tests/server/text/readers"
# What `narrow_tests.py` misses.
_TESTS: dict[str, tuple[str, ...]] = {
    "server/engine/scheduler.py": (
        f"{_ENGINE}/test_fair_queue.py",
        f"{_ENGINE}/test_overload.py",
        f"{_WORKERS}/test_thread_lending.py",
        f"{_WORKERS}/test_pool.py",
    ),
    **dict.fromkeys(
        (
            "server/engine/batch.py",
            *(
                f"server/engine/decoding/{name}.py"
                for name in (
                    *("beam_search", "candidate_selection", "constrained", "forced_search", "independent_search"),
                    *("loop_detection", "request_decoder", "token_recorder"),
                )
            ),
        ),
        (
            f"{_ENGINE}/test_engine.py",
            f"{_ENGINE}/test_engine_streams.py",
            *(f"{_DECODING}/test_{name}.py" for name in _OPTION_TESTS),
        ),
    ),
    "server/http/app.py": (f"{_HTTP}/test_api_keys.py", f"{_HTTP}/test_app.py"),
    "server/http/middleware/recorder.py": (
        f"{_HTTP}/middleware/test_recorder.py",
        f"{_HTTP}/test_api_keys.py",
        f"{_HTTP}/admin/test_admin.py",
        f"{_HTTP}/test_tracing.py",
    ),
    "server/operations/tracing.py": (f"{_HTTP}/test_tracing.py",),
    "server/http/middleware/gate.py": (f"{_HTTP}/middleware/test_gate.py", f"{_HTTP}/test_api_keys.py"),
    "server/http/middleware/body.py": (f"{_HTTP}/middleware/test_body.py",),
    "server/http/requests/parameters.py": (
        f"{_HTTP}/protocols/deepl/test_texts.py",
        f"{_HTTP}/protocols/libretranslate/test_texts.py",
        f"{_HTTP}/protocols/native/test_event_stream.py",
    ),
    "server/http/responses/errors.py": (f"{_HTTP}/protocols/deepl/test_multilingual.py",),
    "server/http/connection.py": (
        "tests/faults/test_connections.py",
        "tests/faults/test_bodies.py",
        "tests/faults/test_http.py",
    ),
    "server/text/readers/html.py": (f"{_READERS}/test_markup.py",),
    "server/text/readers/unit_builder.py": (f"{_READERS}/test_markup.py", f"{_READERS}/test_plain_text.py"),
    "server/documents/markup/items.py": (
        "tests/server/documents/test_random_paragraphs.py",
        "tests/server/documents/test_dense_documents.py",
        f"{_FORMATS}/test_text_files.py",
    ),
    "server/documents/markup/cues.py": (f"{_FORMATS}/test_subtitles.py",),
    "server/documents/formats/csv.py": (f"{_FORMATS}/test_format_options.py",),
    "server/text/protection/tag_placement.py": (f"{_READERS}/test_markup.py",),
    "server/documents/formats/odf.py": (f"{_FORMATS}/test_office_files.py", f"{_FORMATS}/test_spreadsheets.py"),
    "server/documents/formats/docx.py": (f"{_FORMATS}/test_office_files.py",),
    "server/documents/formats/xlsx.py": (f"{_FORMATS}/test_spreadsheets.py",),
    "server/documents/formats/html.py": (f"{_FORMATS}/test_text_files.py",),
    "server/documents/formats/md.py": (f"{_FORMATS}/test_text_files.py",),
    "server/documents/formats/txt.py": (f"{_FORMATS}/test_text_files.py",),
    "server/documents/formats/vtt.py": (f"{_FORMATS}/test_subtitles.py",),
    "server/documents/formats/ass.py": (f"{_FORMATS}/test_subtitles.py",),
    "server/documents/formats/json.py": (f"{_FORMATS}/test_data_files.py",),
    "server/documents/formats/yaml.py": (f"{_FORMATS}/test_data_files.py",),
}

# Of every module below a folder: limits and statuses of routes are in the description of the API.
_OF_FOLDERS = {"server/http/protocols/": "tests/docs/test_openapi_file.py"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One changed file."""

    file: str
    code: str
    changed: str

    @property
    def change(self) -> str:
        """The removed and added lines."""
        lines = unified_diff(self.code.splitlines(), self.changed.splitlines(), lineterm="", n=0)
        return "\n".join(line for line in lines if not line.startswith(("---", "+++")))


def mutants_of(file: str, count: int, seed: int) -> list[Mutant]:
    """Return a sample of the mutants of a file that Python can compile; all if `count` is 0."""
    from cosmic_ray.ast import ast_nodes, get_ast  # type: ignore[import-not-found, unused-ignore]
    from cosmic_ray.mutating import mutate_code  # type: ignore[import-not-found, unused-ignore]
    from cosmic_ray.plugins import get_operator, operator_names  # type: ignore[import-not-found, unused-ignore]

    code = (ROOT / file).read_text(encoding="utf-8")
    nodes = list(ast_nodes(get_ast(code)))
    places: list[tuple[str, int]] = []
    for name in operator_names():
        # `is` for `==` is the same with small numbers.
        if name.startswith(_OPERATORS) and not name.endswith(("_Is", "_IsNot")):
            num_places = sum(len(list(get_operator(name)().mutation_positions(node))) for node in nodes)
            places += [(name, occurrence) for occurrence in range(num_places)]
    random.Random(seed).shuffle(places)
    found: dict[str, Mutant] = {}
    for name, occurrence in places:
        changed = mutate_code(code, get_operator(name)(), occurrence)
        if changed is None or changed == code or changed in found:
            continue
        with contextlib.suppress(SyntaxError):
            compile(changed, file, "exec")
            found[changed] = Mutant(file, code, changed)
        if len(found) == count:
            break
    return list(found.values())


@contextlib.contextmanager
def copied_project() -> Iterator[Path]:
    """Yield a copy of the project in a temporary folder, and change into it."""
    with tempfile.TemporaryDirectory() as folder:
        listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        files = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        copy = Path(folder)
        for name in files.splitlines():
            if name.startswith((*_LINKED, "clients/")):
                continue
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
        for folder in _LINKED:
            (copy / folder).symlink_to(ROOT / folder)
        for library in (ROOT / "kernels").glob("*.so"):
            shutil.copy(library, copy / "kernels")
        os.chdir(copy)
        sys.path[:] = [str(copy), *(path for path in sys.path if path not in ("", str(ROOT), str(ROOT / "tests")))]
        try:
            yield copy
        finally:
            os.chdir(ROOT)


def is_noticed(tests: Sequence[str], timeout_seconds: float, *, is_quiet: bool = True) -> bool:
    """Run tests in a forked process, and end what they leave; return whether one fails, or the time is over."""
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(round(timeout_seconds))
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2) if is_quiet else (0,):
            os.dup2(null, stream)
        import pytest

        flags = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore:Module already imported"]
        os._exit(int(pytest.main([*flags, *tests])))
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return status != 0


def _write(file: Path, code: str) -> None:
    # Python compiles a file again whose size or second of change differs; two mutants can have both in common.
    Path(importlib.util.cache_from_source(file)).unlink(missing_ok=True)
    file.write_text(code, encoding="utf-8")


def _show(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    """Print the mutants that no test notices, and the counts of each file; return 1 below the required share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--sample", type=int, default=20, help="mutants of each file; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--required", type=float, default=0.0, help="share that must be noticed")
    options = parser.parse_args(arguments)
    for library in _LIBRARIES:
        importlib.import_module(library)
    sampled = [mutant for file in options.files for mutant in mutants_of(file, options.sample, options.seed)]
    num_noticed = 0
    with copied_project() as copy:
        for file in options.files:
            of_folder = (test for folder, test in _OF_FOLDERS.items() if file.startswith(folder))
            tests, begun = tests_of(file, (*_TESTS.get(file, ()), *of_folder)), time.monotonic()
            if not tests or is_noticed(tests, 300, is_quiet=False):
                raise SystemExit(f"{file}: no tests, or they fail without a change")
            limit = 10 + 5 * (time.monotonic() - begun)
            own = [mutant for mutant in sampled if mutant.file == file]
            alive = []
            for mutant in own:
                _write(copy / file, mutant.changed)
                if not is_noticed(tests, limit):
                    alive.append(mutant)
                    _show(f"{file}: not noticed\n{mutant.change}\n")
            _write(copy / file, (ROOT / file).read_text(encoding="utf-8"))
            num_noticed += len(own) - len(alive)
            _show(f"{file}: {len(own) - len(alive)} of {len(own)} noticed")
    _show(f"{num_noticed} of {len(sampled)} noticed")
    return int(num_noticed < options.required * len(sampled))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
