"""The model that identifies languages: py3langid's, decompressed once a machine and then mapped from disk."""

import contextlib
import os
import shutil
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from py3langid.langid import MODEL_DIR, MODEL_FILE, LanguageIdentifier
from py3langid.modelio import load_model

from bundle.home_folder import home_folder

_LIBRARY = "py3langid"
# Weights of features by language, logarithms of the languages' probabilities, their labels, the transitions of the
# automaton that finds features in bytes, the row of transitions of each state, and the feature that ends there.
_ARRAYS = ("ptc", "pc", "classes", "nextmove", "row", "output")


@cache
def load_identifier() -> LanguageIdentifier:
    """Return the model, loaded once a process."""
    try:
        home = home_folder(os.environ)
    except ValueError:  # the user has none
        home = None
    return open_identifier(home)


def open_identifier(home: Path | None) -> LanguageIdentifier:
    """Return the model, which the first process writes to a folder in `home`, and others map: they share its memory.

    Decompressing its 68 MB takes half a second. Where nothing can be written, each process does that.
    """
    folder = None if home is None else home / f"{_LIBRARY}-{version(_LIBRARY)}"
    arrays = None if folder is None else _mapped(folder)
    if arrays is None:
        arrays = [np.asarray(each) for each in load_model(MODEL_DIR / MODEL_FILE)]
        if folder is not None:
            with contextlib.suppress(OSError):
                _write(arrays, folder)
    weights, probabilities, labels, transitions, rows, outputs = arrays
    # An element of a memory view is an integer of Python, as the library's loop over bytes expects.
    return LanguageIdentifier(
        weights, probabilities, labels.tolist(), transitions.data, outputs.tolist(), True, tk_row=rows.tolist()
    )


def _mapped(folder: Path) -> list[NDArray[np.generic]] | None:
    """Return the arrays of a folder; None if they are not there or damaged."""
    try:
        return [np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r")) for name in _ARRAYS]
    except (OSError, ValueError, EOFError):
        return None


def _write(arrays: list[NDArray[np.generic]], folder: Path) -> None:
    """Write a folder of arrays, complete or not at all; another process may be first."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    staged = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    try:
        for name, array in zip(_ARRAYS, arrays, strict=True):
            with (staged / f"{name}.npy").open("wb") as file:
                np.save(file, array)
                os.fsync(file.fileno())  # a file of zeros after a power failure would detect wrong languages for good
        shutil.rmtree(folder, ignore_errors=True)  # a damaged one
        staged.rename(folder)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
