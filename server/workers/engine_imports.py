"""Imports that engine processes share: the forkserver imports this module before it forks them."""

import gc

import server.engine.runners.onnx
import server.workers.process_main  # noqa: F401 - it binds the name of the package, as the other does

# A collection in an engine process would write to every page with objects, which would then not be shared.
gc.freeze()
