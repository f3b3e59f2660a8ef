"""`kvasir serve` with an engine that echoes: `python -m benchmarks.service.echo_server PORT BUNDLE`."""

from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import typer

from benchmarks.service.echo import EchoEngine
from bundle.loading import load_bundle
from server.cli import serve as command
from server.interface.engine_client import EngineClient
from server.operations.metrics import Metrics
from server.operations.settings import Settings


def main(port: int, bundle: Path) -> None:
    """Serve until a signal arrives."""
    engine = EchoEngine(load_bundle(bundle))

    def open_engines(settings: Settings, observer: Metrics) -> Sequence[EngineClient]:
        return [engine]

    with patch.object(command, "open_engines", open_engines):
        command.serve(Settings(model=[bundle], port=port, log_level="warning"))


if __name__ == "__main__":
    typer.run(main)
