"""Kinds of servers: the command of each, and the settings worth trying."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.engines.models import Conversions, Model
from benchmarks.paths import ROOT
from benchmarks.workers.process import WorkerFailed

Settings = Mapping[str, str]

BOUNDED = "-bounded"
NAMES = (
    "kvasir",
    "ctranslate2",
    "ctranslate2-bounded",
    "huggingface",
    "huggingface-bounded",
)

_WINDOWS = ("0", "2", "5", "10")
_BATCHES = ("8", "16", "32", "64")
_BATCH_TOKENS = ("256", "512", "1024")
_WAITING = ("16", "32", "64", "128")


class ServerFailed(RuntimeError):
    """The server did not start; the message is the reason in one line."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Command and folder of a server. `command` contains {port} in place of the port."""

    command: tuple[str, ...]
    ready_path: str
    environment: dict[str, str] = field(default_factory=dict)
    folder: Path = ROOT


@dataclass(frozen=True, slots=True)
class Material:
    """Inputs of all servers: the same weights as a checkpoint and as a bundle, and the folder of other formats.

    `beam_size` is the default of requests without one. `kvasir_flags` are added to those of `kvasir serve`.
    """

    checkpoint: Path
    bundle: Path
    folder: Path
    source: str = "en"
    beam_size: int | None = None
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
    others = {"ctranslate2": _ctranslate2, "huggingface": _hugging_face}
    return others[kind](name, material, name.endswith(BOUNDED))


def _kvasir(material: Material) -> ServerKind:
    """Return Kvasir with its default settings, but without its sentence cache, which no other server has."""
    command = (sys.executable, "-m", "kvasir", "serve", "--model", str(material.bundle), "--port", "{port}")
    quiet = ("--cache-sentences", "0", "--log-level", "warning")
    launch = Launch((*command, *quiet, *material.beam_flags, *material.kvasir_flags), "/health/ready")
    return ServerKind("kvasir", lambda _: launch, {})


def _ctranslate2(name: str, material: Material, is_bounded: bool) -> ServerKind:
    try:
        model = Conversions(material.folder).ctranslate2(
            Model(material.checkpoint.name, material.checkpoint, {}), "int8"
        )
    except WorkerFailed as failure:
        raise ServerFailed(str(failure)) from failure
    return ServerKind(
        name,
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


def _launcher(module: str, material: Material, *flags: str) -> Callable[[Settings], Launch]:
    start = (sys.executable, "-m", f"benchmarks.servers.{module}", "--checkpoint", str(material.checkpoint))

    def launch(settings: Settings) -> Launch:
        chosen = (word for name, value in settings.items() for word in (f"--{name}", value))
        language = ("--language", material.source, "--port", "{port}")
        return Launch((*start, *flags, *language, *material.beam_flags, *chosen), "/health/ready")

    return launch


def _layout(inter: int, intra: int) -> Settings:
    return {"inter-threads": str(inter), "intra-threads": str(intra)}


def _waiting(is_bounded: bool) -> Settings:
    return {"max-waiting": "64"} if is_bounded else {}


def _choices(name: str, values: Sequence[str]) -> tuple[Settings, ...]:
    return tuple({name: value} for value in values)
