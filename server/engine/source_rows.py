"""The row of the cross cache that has each row's source."""

import numpy as np
from numpy.typing import NDArray

from kernels.cache_moves import SOURCE_PLACE_UNIT

_Rows = NDArray[np.intp]


class SourceRows:
    """Rows of the cross cache, by the row that reads them: its own, or with `is_shared` one for all beams of a request.

    A shared source does not move while a row reads it, and its row is free when no live row does. `lengths` [max_rows]
    are the lengths of sources, which the cache sets.
    """

    def __init__(self, lengths: NDArray[np.int32], *, is_shared: bool) -> None:
        self.is_shared = is_shared
        self._lengths = lengths
        self.rows = np.arange(lengths.size, dtype=np.int32)
        """The row of the cross cache that each row reads, [max_rows]."""
        self.places = lengths.copy()
        """The input of graphs for the lengths of sources, [max_rows]; see `SOURCE_PLACE_UNIT`."""

    def begin(self, row: int, is_live: NDArray[np.bool_]) -> int:
        """Return the row of the cross cache for the source of a row that begins, of the length set before.

        With `is_shared`, it is the first one that no other live row reads; there is one while a row is free.
        """
        if self.is_shared:
            is_free = np.ones(self.rows.size, np.bool_)
            is_free[self.rows[is_live & (np.arange(is_live.size) != row)]] = False
            self.rows[row] = is_free.argmax()
        self._place(row)
        return int(self.rows[row])

    def follow(self, sources: _Rows, destinations: _Rows) -> None:
        """Let rows read what others read, of the lengths set before."""
        if self.is_shared:
            self.rows[destinations] = self.rows[sources]
        self._place(destinations)

    def _place(self, rows: _Rows | int) -> None:
        self.places[rows] = self._lengths[rows] + (self.rows[rows] - rows) * SOURCE_PLACE_UNIT
