"""A server whose engine answers with its source at once: what remains is the time and memory of everything else."""

import runpy
from collections.abc import Sequence

import server.cli.serve
from benchmarks.service.echo import EchoEngine
from bundle.loading import load_bundle
from server.interface.engine_client import EngineClient
from server.operations.defaults import DEFAULT_MODEL


def _open_engines(*_: object, **__: object) -> Sequence[EngineClient]:
    return [EchoEngine(load_bundle(DEFAULT_MODEL))]


if __name__ == "__main__":
    vars(server.cli.serve)["open_engines"] = _open_engines
    runpy.run_module("kvasir", run_name="__main__")
