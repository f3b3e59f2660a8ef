"""Kinds of servers: the command of each, and the settings worth trying."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.servers.conversions import argos_packages, ctranslate2_model
from benchmarks.servers.process import Launch, ServerFailed

Settings = Mapping[str, str]
Protocol = Literal["native", "libretranslate"]

BOUNDED = "-bounded"
NAMES = (
    "kvasir",
    "ctranslate2",
    "ctranslate2-bounded",
    "huggingface",
    "huggingface-bounded",
    "slimt",
    "slimt-bounded",
    "libretranslate",
)

_WINDOWS = ("0", "2", "5", "10")
_BATCHES = ("8", "16", "32", "64")
_BATCH_TOKENS = ("256", "512", "1024")
_WAITING = ("16", "32", "64", "128")


@dataclass(frozen=True, slots=True)
class Material:
    """Inputs of all servers: the same weights as a checkpoint and as a bundle, and the folder of other formats.

    `beam_size` is for servers that take it at their start. `libretranslate` is the path of its program, in its own
    environment, and `slimt` an interpreter with slimt. `kvasir_flags` are added to those of `kvasir serve`.
    """

    checkpoint: Path
    bundle: Path
    folder: Path
    source: str = "en"
    target: str = "de"
    beam_size: int | None = None
    libretranslate: Path | None = None
    slimt: Path | None = None
    kvasir_flags: Sequence[str] = ()

    @property
    def cpus(self) -> int:
        """Number of processors, shared by each server and the load generator."""
        return len(os.sched_getaffinity(0))

    @property
    def beam_flags(self) -> tuple[str, ...]:
        """Flags that set the beam size of requests without one."""
        return () if self.beam_size is None else ("--default-beam-size", str(self.beam_size))


@dataclass(frozen=True, slots=True)
class ServerKind:
    """A kind of server with its settings. Tuning tries them dimension by dimension, keeping the best of each.

    `overload_choices` are compared under overload.
    """

    name: str
    protocol: Protocol
    launch: Callable[[Settings], Launch]
    defaults: Settings
    dimensions: tuple[tuple[Settings, ...], ...] = ()
    overload_choices: tuple[Settings, ...] = ()

    @property
    def relative(self) -> str:
        """Name of the same server with an unbounded queue, whose best settings apply to this one."""
        return self.name.removesuffix(BOUNDED)


def server_kind(name: str, material: Material) -> ServerKind:
    """Return a kind of server by name, converting the weights if necessary. Raises `ServerFailed` if not available."""
    kind = name.removesuffix(BOUNDED)
    if name not in NAMES:
        raise ServerFailed(f"unknown server {name!r}; available: {', '.join(NAMES)}")
    if kind == "kvasir":
        return _kvasir(material)
    if kind == "libretranslate":
        return _libretranslate(material)
    others = {"ctranslate2": _ctranslate2, "huggingface": _hugging_face, "slimt": _slimt}
    return others[kind](name, material, name.endswith(BOUNDED))


def _kvasir(material: Material) -> ServerKind:
    """Return Kvasir with its default settings, but without its sentence cache, which no other server has."""
    command = (sys.executable, "-m", "kvasir", "serve", "--model", str(material.bundle), "--port", "{port}")
    quiet = ("--cache-sentences", "0", "--log-level", "warning")
    launch = Launch((*command, *quiet, *material.beam_flags, *material.kvasir_flags), "/health/ready")
    return ServerKind("kvasir", "native", lambda _: launch, {})


def _ctranslate2(name: str, material: Material, is_bounded: bool) -> ServerKind:
    model = ctranslate2_model(material.checkpoint, material.folder)
    return ServerKind(
        name,
        "native",
        _launcher("ctranslate2_server", material, "--model", str(model)),
        {
            **_layout(material.cpus, 1),
            "max-batch": "32",
            "max-batch-tokens": "1024",
            "window-ms": "2",
            "batches-ahead": "0",
            **_waiting(is_bounded),
        },
        (
            (_layout(material.cpus, 1), _layout(1, material.cpus)),
            _choices("max-batch", _BATCHES),
            _choices("max-batch-tokens", _BATCH_TOKENS),
            _choices("window-ms", _WINDOWS),
            _choices("batches-ahead", ("0", "1")),
        ),
        _choices("max-waiting", _WAITING) if is_bounded else (),
    )


def _hugging_face(name: str, material: Material, is_bounded: bool) -> ServerKind:
    return ServerKind(
        name,
        "native",
        _launcher("hugging_face_server", material, "--threads", str(material.cpus)),
        {"dtype": "float32", "max-batch": "32", "max-batch-tokens": "1024", "window-ms": "5", **_waiting(is_bounded)},
        (
            _choices("dtype", ("float32", "bfloat16")),
            _choices("max-batch", _BATCHES),
            _choices("max-batch-tokens", _BATCH_TOKENS),
            _choices("window-ms", _WINDOWS),
        ),
        _choices("max-waiting", _WAITING) if is_bounded else (),
    )


def _slimt(name: str, material: Material, is_bounded: bool) -> ServerKind:
    if material.slimt is None:
        raise ServerFailed("an interpreter with slimt 0.1.0 is required; set --slimt")
    if material.beam_size != 1:
        raise ServerFailed("slimt has no beam search; set --beam-size 1")
    layouts = tuple(
        {"processes": str(processes), "workers": str(material.cpus // processes)} for processes in {1, material.cpus}
    )
    return ServerKind(
        name,
        "native",
        _launcher("slimt_server", material, "--python", str(material.slimt)),
        {**layouts[-1], "max-batch": "32", "window-ms": "2", **_waiting(is_bounded)},
        (layouts, _choices("max-batch", _BATCHES), _choices("window-ms", _WINDOWS)),
        _choices("max-waiting", _WAITING) if is_bounded else (),
    )


def _launcher(module: str, material: Material, *flags: str) -> Callable[[Settings], Launch]:
    start = (sys.executable, "-m", f"benchmarks.servers.{module}", "--checkpoint", str(material.checkpoint))

    def launch(settings: Settings) -> Launch:
        chosen = (word for name, value in settings.items() for word in (f"--{name}", value))
        language = ("--language", material.source, "--port", "{port}")
        return Launch((*start, *flags, *language, *material.beam_flags, *chosen), "/health/ready")

    return launch


def _libretranslate(material: Material) -> ServerKind:
    if material.libretranslate is None:
        raise ServerFailed(
            "its program is required; install libretranslate in its own environment and set --libretranslate"
        )
    if not material.libretranslate.is_file():
        raise ServerFailed(f"{material.libretranslate} does not exist; set --libretranslate")
    packages = argos_packages(material.checkpoint, material.folder, material.source, material.target)
    home = material.folder / "libretranslate-home"
    home.mkdir(parents=True, exist_ok=True)
    command = (str(material.libretranslate), "--host", "127.0.0.1", "--port", "{port}")
    plain = ("--disable-web-ui", "--disable-files-translation")
    fixed = {
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "ARGOS_PACKAGES_DIR": str(packages),
        "ARGOS_CHUNK_TYPE": "MINISBD",
        "ARGOS_COMPUTE_TYPE": "int8",
        "ARGOS_BEAM_SIZE": str(material.beam_size or 4),
        "ARGOS_BATCH_SIZE": "1024",  # padded source tokens
    }

    def launch(settings: Settings) -> Launch:
        return Launch((*command, *plain), "/health", fixed | dict(settings), home)

    def layout(inter: int, intra: int) -> Settings:
        return {"ARGOS_INTER_THREADS": str(inter), "ARGOS_INTRA_THREADS": str(intra)}

    return ServerKind(
        "libretranslate",
        "libretranslate",
        launch,
        {**layout(material.cpus, 1), "LT_THREADS": "4"},
        ((layout(material.cpus, 1), layout(1, material.cpus)), _choices("LT_THREADS", ("2", "4", "8", "16"))),
    )


def _layout(inter: int, intra: int) -> Settings:
    return {"inter-threads": str(inter), "intra-threads": str(intra)}


def _waiting(is_bounded: bool) -> Settings:
    return {"max-waiting": "64"} if is_bounded else {}


def _choices(name: str, values: Sequence[str]) -> tuple[Settings, ...]:
    return tuple({name: value} for value in values)
