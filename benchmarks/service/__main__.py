"""The server without a model: requests a second by protocol and by simulated cores, and the text pipeline alone.

    python -m benchmarks.service [--seconds 5] [--connections 8] [--against CHECKOUT]

The engine answers each sentence with its own tokens. Every call decodes; the sentence cache is not used.
"""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.machine import describe_machine
from benchmarks.paths import DEFAULT_BUNDLE
from benchmarks.service.requests import request_table, scaling_table
from benchmarks.service.texts import text_table
from bundle.loading import load_bundle


def main(
    bundle: Annotated[Path, typer.Argument()] = DEFAULT_BUNDLE,
    seconds: Annotated[float, typer.Option(min=0.1, help="duration for each protocol")] = 5.0,
    connections: Annotated[int, typer.Option(min=1, help="connections, each with one request at a time")] = 8,
    against: Annotated[Path | None, typer.Option(help="another checkout, measured in turn with this one")] = None,
) -> None:
    """Print all tables."""
    machine = describe_machine()
    loaded = load_bundle(bundle)
    source, target = loaded.config.source_languages[0], loaded.config.target_languages[0]
    print(f"{machine.cpu}, load before {machine.load_before}\n")
    print(request_table(bundle.resolve(), source, target, seconds, connections, against and against.resolve()))
    print(f"\n{scaling_table(bundle.resolve(), source, target, seconds)}")
    print(f"\n{text_table(loaded, source, target)}")


if __name__ == "__main__":
    typer.run(main)
