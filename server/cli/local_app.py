"""The web application inside this process, for commands that call its API without a port."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI

from server.http.app import create_app
from server.operations.log_lines import configure_logging
from server.operations.settings import Settings


@asynccontextmanager
async def local_app(model: Sequence[Path] | None) -> AsyncIterator[FastAPI]:
    """Load bundles and yield the application; None loads those of `KVASIR_MODEL`, or the bundled one.

    The other settings are those of the environment. Only warnings and errors are logged, because the command has no
    requests from others. Raises `BundleError` or ValueError.
    """
    settings = Settings(model=list(model)) if model else Settings()
    configure_logging("warning", settings.log_format)
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        yield app
