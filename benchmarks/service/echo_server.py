"""`kvasir serve` with an engine that echoes.

python -m benchmarks.service.echo_server PORT BUNDLE [SIMULATED_CORES] [SECONDS_A_SENTENCE]
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
from unittest.mock import patch

import typer

from benchmarks.service.echo import EchoEngine
from bundle.loading import load_bundle
from server.cli import serve as command
from server.interface.engine_client import EngineClient
from server.operations.metrics import Metrics
from server.operations.settings import Settings


def main(
    port: int,
    bundle: Path,
    num_cores: Annotated[int, typer.Argument()] = 0,
    sentence_seconds: Annotated[float, typer.Argument()] = 0.0,
) -> None:
    """Serve until a signal arrives. Log lines are written as by a server with default settings."""
    engine = EchoEngine(load_bundle(bundle), num_cores, sentence_seconds)

    def open_engines(settings: Settings, observer: Metrics, meanwhile: object = None) -> Sequence[EngineClient]:
        return [engine]

    with patch.object(command, "open_engines", open_engines):
        # No request is rejected because more arrive than one process can begin: their number is measured.
        command.serve(Settings(model=[bundle], port=port, max_queue_seconds=60.0))


if __name__ == "__main__":
    typer.run(main)
