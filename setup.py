"""Compilation of the native operators during the build of the package; pyproject.toml has all other settings.

The compiler is Zig's C compiler, a pinned package in pip's temporary build environment. It compiles for an old glibc on
every machine, so that the wheel runs on other machines.
"""

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

# -ffp-contract=off: the sources contain explicit fused multiply-adds, so that every instruction set has the same sums.
# -fno-sanitize: by default, Zig checks for undefined behaviour at run time.
_FLAGS = (
    *("-std=gnu11", "-O3", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-fno-math-errno"),
    *("-fno-sanitize=undefined", "-Wall", "-Wextra", "-Werror"),
)
_KERNELS = "kernels.c"
# kernels.c is compiled once for each of these; at run time the library selects the best for the processor.
_PORTABLE: dict[str, tuple[str, ...]] = {"kernels_portable": ()}
_INSTRUCTION_SETS: dict[str, dict[str, tuple[str, ...]]] = {
    "x86_64": {
        "kernels_portable": ("-mcpu=x86_64",),
        "kernels_avx2": ("-mcpu=x86_64_v3",),
        "kernels_avx2one": ("-mcpu=x86_64_v3", "-DONE_MULTIPLIER"),
        "kernels_avxvnni": ("-mcpu=x86_64_v3+avxvnni",),
        "kernels_avx512vnni": ("-mcpu=x86_64_v4+avx512vnni", "-mprefer-vector-width=512"),
        "kernels_amx": ("-mcpu=x86_64_v4+avx512vnni+amx_tile+amx_int8", "-mprefer-vector-width=512"),
    },
    "aarch64": {
        "kernels_portable": ("-mcpu=generic",),
        "kernels_dotprod": ("-mcpu=generic+dotprod",),
        "kernels_i8mm": ("-mcpu=generic+dotprod+i8mm",),
    },
}
_SOURCES = Path("kernels", "source")


class CompileOperators(build_ext):
    """`build_ext` for a shared library that ONNX Runtime loads, and Python does not."""

    def get_ext_filename(self, fullname: str) -> str:
        """Return the file name without the tag of a Python version: the library uses none."""
        return str(Path(*fullname.split(".")).with_suffix(".so"))

    def build_extension(self, ext: Extension) -> None:
        """Compile the library. Raises `CompileError`; for an optional extension, setuptools reports a warning."""
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        # A library of older sources must not remain if compilation fails.
        target.unlink(missing_ok=True)
        if self.editable_mode:
            Path(self.get_ext_filename(ext.name)).unlink(missing_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            _compile([Path(source) for source in ext.sources], target, Path(folder))


class PlatformWheel(bdist_wheel):
    """A wheel for one platform and every version of Python."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return the tags of Python, its binary interface and the platform."""
        return "py3", "none", super().get_tag()[2]


def _compile(sources: list[Path], library: Path, folder: Path) -> None:
    """Compile C files into a shared library; intermediate files stay in `folder`."""
    machine = platform.machine()
    target = ["-target", f"{machine}-linux-gnu.2.28"] if sys.platform == "linux" else []
    objects: list[str] = []

    def compile_to_object(source: Path, name: str, flags: tuple[str, ...]) -> None:
        objects.append(str(folder / f"{name}.o"))
        _zig_cc([*target, *_FLAGS, *flags, "-c", str(source), "-o", objects[-1]], folder)

    for source in sources:
        if source.name == _KERNELS:
            for table, flags in _INSTRUCTION_SETS.get(machine, _PORTABLE).items():
                compile_to_object(source, table, (*flags, f"-DKERNELS={table}"))
        else:
            compile_to_object(source, source.stem, ())
    _zig_cc([*target, "-shared", "-s", *objects, "-lm", "-o", str(library)], folder)


def _zig_cc(arguments: list[str], folder: Path) -> None:
    caches = {"ZIG_GLOBAL_CACHE_DIR": str(folder / "global"), "ZIG_LOCAL_CACHE_DIR": str(folder / "local")}
    command = [sys.executable, "-m", "ziglang", "cc", *arguments]
    ran = subprocess.run(  # noqa: S603 - nothing in it comes from outside
        command, env=os.environ | caches, capture_output=True, text=True, check=False
    )
    if ran.returncode != 0:
        raise CompileError(
            "the native operators were not compiled; ONNX Runtime's slower operators are used: "
            f"{' '.join(command)} failed: {ran.stderr.strip()}"
        )


setup(
    cmdclass={"build_ext": CompileOperators, "bdist_wheel": PlatformWheel},
    ext_modules=[
        Extension(
            "kernels.libkvasir",
            sources=sorted(str(path) for path in _SOURCES.glob("*.c")),
            depends=sorted(str(path) for path in _SOURCES.glob("*.h")),
            optional=True,
        )
    ],
)
