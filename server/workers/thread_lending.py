"""Loan of idle threads among the models of one server."""

import threading
from typing import Protocol


class Borrower(Protocol):
    """Engines of one model, some of which decode on the threads of other models."""

    @property
    def has_requests(self) -> bool:
        """Whether a request waits or runs."""
        ...

    def lend(self, is_lent: bool) -> None:
        """Let the engines beyond the model's share of the threads take requests, or not."""
        ...


class ThreadLending:
    """Lends the threads of idle models to the only one that has requests. Thread-safe.

    As soon as a second model has requests, each takes new ones on its own share only, and finishes those it has.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # `lend` may complete requests
        self._models: dict[Borrower, bool] = {}  # whether each has requests
        self._lent_to: frozenset[Borrower] = frozenset()

    def add(self, model: Borrower) -> None:
        """Include a model, which may use lent threads until then."""
        with self._lock:
            self._lent_to |= {model}
            self._change(model, model.has_requests)

    def remove(self, model: Borrower) -> None:
        """Exclude a model, which was closed."""
        self._change(model, None)

    def activity_changed(self, model: Borrower) -> None:
        """Call after the first request of an idle model, and after its last one ended."""
        if self._models.get(model) != model.has_requests:
            self._change(model, model.has_requests)

    def _change(self, model: Borrower, has_requests: bool | None) -> None:
        with self._lock:
            if has_requests is None:
                self._models.pop(model, None)
            else:
                self._models[model] = has_requests
            busy = [each for each, is_busy in self._models.items() if is_busy]
            # Idle models may borrow as well: their first request finds the threads free.
            lent_to = frozenset(self._models if not busy else busy if len(busy) == 1 else ())
            changed = [each for each in self._models if (each in lent_to) != (each in self._lent_to)]
            self._lent_to = lent_to
            for each in changed:
                each.lend(each in lent_to)
