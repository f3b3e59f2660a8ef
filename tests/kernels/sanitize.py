"""Native operators under AddressSanitizer and UndefinedBehaviorSanitizer: `python -m tests.kernels.sanitize`.

Builds the library with both in a temporary folder, and runs the tests of the kernels on it, with more drawn shapes. On
a processor with AVX2, it does so again for each of AVX-VNNI and AVX512-VNNI that the processor lacks, with its
instructions emulated. Arguments select other tests.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.kernels.instruction_sets import INSTRUCTION_SETS

ROOT = Path(__file__).resolve().parents[2]
_SANITIZERS = (
    "-fsanitize=address,undefined",
    "-shared-libasan",
    "-fno-sanitize-recover=undefined",
    "-fno-omit-frame-pointer",
)
_CLANG = os.environ.get("CLANG", "clang-19")  # gcc does not have the vector types of the sources
_FLAGS = (
    "-std=gnu11",
    "-O1",
    "-g",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-Wno-psabi",
    "-Wno-pass-failed",
)
_PORTABLE: dict[str, tuple[str, ...]] = {"kernels_portable": ()}
_INSTRUCTION_SETS: dict[str, dict[str, tuple[str, ...]]] = {
    "x86_64": {
        **_PORTABLE,
        "kernels_avx2": ("-march=x86-64-v3",),
        "kernels_avx2one": ("-march=x86-64-v3", "-DONE_MULTIPLIER"),
        "kernels_avxvnni": ("-march=x86-64-v3", "-mavxvnni"),
        "kernels_avx512vnni": ("-march=x86-64-v4", "-mavx512vnni", "-mprefer-vector-width=512"),
        "kernels_amx": ("-march=x86-64-v4", "-mavx512vnni", "-mamx-int8", "-mprefer-vector-width=512"),
    },
    "aarch64": {
        **_PORTABLE,
        "kernels_dotprod": ("-march=armv8-a+dotprod",),
        "kernels_i8mm": ("-march=armv8-a+dotprod+i8mm",),
    },
}
_EMULATED = ("avxvnni", "avx512vnni")
_TESTS = ("tests/kernels",)


def build(folder: Path, instruction_sets: Mapping[str, Sequence[str]]) -> None:
    """Compile the library into a copy of the package `kernels` in `folder`. Raises `CalledProcessError`.

    `instruction_sets` has the compiler's flags for each table of kernels.
    """
    shutil.copytree(ROOT / "kernels", folder / "kernels", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    objects: list[str] = []
    for source in sorted((ROOT / "kernels" / "source").glob("*.c")):
        tables: dict[str, Sequence[str]] = {source.stem: ()}
        if source.name == "kernels.c":
            tables = {table: (*flags, f"-DKERNELS={table}") for table, flags in instruction_sets.items()}
        for table, flags in tables.items():
            objects.append(str(folder / f"{table}.o"))
            _run(_CLANG, *_FLAGS, *_SANITIZERS, *flags, "-c", str(source), "-o", objects[-1])
    _run(_CLANG, "-shared", *_SANITIZERS, *objects, "-lm", "-o", str(folder / "kernels" / "libkvasir.so"))


def _run(*command: str, **environment: str) -> None:
    subprocess.run(command, check=True, env=os.environ | environment, cwd=ROOT)


def _runtime() -> str:
    """Return the runtime library of the sanitizers."""
    name = f"libclang_rt.asan-{platform.machine()}.so"
    found = subprocess.run([_CLANG, f"-print-file-name={name}"], check=True, capture_output=True, text=True)
    path = Path(found.stdout.strip())
    if not path.is_absolute():
        raise SystemExit(f"{_CLANG} has no {name}; Debian: apt-get install clang-19 libclang-rt-19-dev")
    return str(path)


def main() -> None:
    """Build, and run the tests. Raises `CalledProcessError` if one fails or a sanitizer finds an error."""
    instruction_sets = _INSTRUCTION_SETS.get(platform.machine(), _PORTABLE)
    _build_and_test(instruction_sets)
    for name in _EMULATED if "avx2" in INSTRUCTION_SETS else ():
        if name not in INSTRUCTION_SETS:
            header = Path(__file__).with_name(f"emulated_{name}.h")
            # In the place of the kernels for AVX2, which the processor can run.
            emulated = (*instruction_sets["kernels_avx2"], "-include", str(header))
            _build_and_test(instruction_sets | {"kernels_avx2": emulated})


def _build_and_test(instruction_sets: Mapping[str, Sequence[str]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder, instruction_sets)
        paths = f"{folder}{os.pathsep}{ROOT}"
        _run(
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"),
            *("-o", f"pythonpath={folder} {ROOT}", *(sys.argv[1:] or _TESTS)),
            PYTHONPATH=paths,
            NUM_SHAPES="60",
            LD_PRELOAD=_runtime(),
            # Python and ONNX Runtime do not free everything at their end, and ONNX Runtime replaces operators new.
            ASAN_OPTIONS="detect_leaks=0,alloc_dealloc_mismatch=0,abort_on_error=1",
            UBSAN_OPTIONS="halt_on_error=1,print_stacktrace=1",
        )


if __name__ == "__main__":
    main()
