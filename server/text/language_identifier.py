"""The model that identifies languages: py3langid's, decompressed once a machine and then mapped from disk."""

import contextlib
import math
import os
import shutil
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from py3langid.langid import MODEL_DIR, MODEL_FILE
from py3langid.modelio import load_model

from bundle.home_folder import home_folder

_LIBRARY = "py3langid"
# Weights of features by language, logarithms of the languages' probabilities, their labels, the transitions of the
# automaton that finds features in bytes, the row of transitions of each state, and the feature that ends there.
_ARRAYS = ("ptc", "pc", "classes", "nextmove", "row", "output")
_LONGEST_FEATURE = 6  # bytes
_MAX_WORDS = 10_000  # that are remembered for a pair of languages


class LanguageIdentifier:
    """Naive Bayes over byte n-grams, as py3langid computes it. Immutable, so threads may share it.

    The state of its automaton depends on the last bytes only. So all positions of all texts advance at once, in as many
    steps as the longest feature has bytes: the library walks from byte to byte in Python.
    """

    def __init__(
        self,
        weights: NDArray[np.floating],
        priors: NDArray[np.floating],
        labels: Sequence[str],
        transitions: NDArray[np.integer],
        rows: NDArray[np.integer],
        features: NDArray[np.integer],
    ) -> None:
        self._weights, self._priors, self._transitions, self._features = weights, priors, transitions, features
        self._rows = rows.astype(np.int64) * 256
        self.labels = tuple(dict.fromkeys(labels))
        # A label may have several columns, one for each script.
        self._columns = {label: [at for at, each in enumerate(labels) if each == label] for label in self.labels}
        self._shared = [columns for columns in self._columns.values() if len(columns) > 1]
        self._firsts = np.array([columns[0] for columns in self._columns.values()])

    def likelihoods(self, text: str, among: Sequence[str] = ()) -> dict[str, float]:
        """Return the probability of each label, or of each `among` some; equal ones for a text without features."""
        encoded = _encoded(text)
        scores = np.zeros(len(self._priors), np.float32)
        if counts := Counter(self._found([encoded])[0].tolist()):
            logs = np.log1p(np.fromiter(counts.values(), np.float32, len(counts)))
            # A product with numbers of 16 bits takes several times as long.
            scores += logs @ self._weights[list(counts)].astype(np.float32) + self._priors
        scores /= max(len(encoded), 1) ** 0.5  # as the library does: otherwise all long texts would be certain
        for columns in self._shared:
            scores[columns[0]] = np.logaddexp.reduce(scores[columns])
        chosen = [self._columns[label][0] for label in among] if among else self._firsts
        values = np.exp(scores[chosen] - scores[chosen].max())
        return dict(zip(among or self.labels, (values / values.sum()).tolist(), strict=True))

    def may_be(self, texts: Sequence[str], label: str, other: str) -> list[bool]:
        """Return which short texts are rather in one language than in another, approximately: word by word.

        Words are remembered, because most of a text's words have been in others before.
        """
        odds, prior, known = self._odds(label, other)
        words = [text.split() for text in texts]
        sums = {word: known.get(word, math.nan) for each in words for word in each}
        if unknown := [word for word, value in sums.items() if value != value]:
            found, words_of = self._found([b" %b " % _encoded(word) for word in unknown])
            new = dict(zip(unknown, np.bincount(words_of, odds[found], len(unknown)).tolist(), strict=True))
            if len(known) > _MAX_WORDS:
                known.clear()
            known.update(new)
            sums.update(new)
        return [sum([sums[word] for word in each]) + prior >= 0 for each in words]

    @lru_cache(maxsize=64)  # noqa: B019 - there is one identifier a process
    def _odds(self, label: str, other: str) -> tuple[NDArray[np.float32], float, dict[str, float]]:
        """Return how much each feature speaks for a label rather than another one, their priors, and known words."""
        mine, theirs = self._columns[label], self._columns[other]
        odds = self._weights[:, mine].max(axis=1).astype(np.float32) - self._weights[:, theirs].min(axis=1)
        return odds * np.log(2), float(self._priors[mine].max() - self._priors[theirs].min()), {}

    def _found(self, texts: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the features of texts, and the text of each."""
        gap = bytes(_LONGEST_FEATURE - 1)  # no feature has a zero
        joined = np.frombuffer(gap + gap.join(texts) + gap, np.uint8)
        num_places = len(joined) - len(gap)
        states = np.zeros(num_places, np.int64)
        for step in range(_LONGEST_FEATURE):
            states = self._transitions[self._rows[states] + joined[step : step + num_places]]
        features = self._features[states]
        places = np.flatnonzero(features >= 0)
        if len(texts) == 1:
            return features[places].astype(np.int64), np.zeros(len(places), np.int64)
        ends = np.cumsum([len(text) + len(gap) for text in texts])
        return features[places].astype(np.int64), np.searchsorted(ends, places, side="right")


def _encoded(text: str) -> bytes:
    text = text.lower() if text.isupper() else text
    return unicodedata.normalize("NFC", text).replace("\0", " ").encode(errors="replace")


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
    weights, priors, labels, transitions, rows, features = arrays
    return LanguageIdentifier(weights, priors, labels.tolist(), transitions, rows, features)


def _mapped(folder: Path) -> list[NDArray[Any]] | None:
    """Return the arrays of a folder; None if they are not there or damaged."""
    try:
        return [np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r")) for name in _ARRAYS]
    except (OSError, ValueError, EOFError):
        return None


def _write(arrays: list[NDArray[Any]], folder: Path) -> None:
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
