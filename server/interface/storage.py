"""Errors of files that mean that no space is left."""

import errno
import sqlite3

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_full(error: BaseException | None) -> bool:
    """Return whether an error of a file or of a database means that it cannot grow."""
    if isinstance(error, sqlite3.Error):
        # Beyond a quota of the process, SQLite reports an error of the write.
        return getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE)
    return isinstance(error, OSError) and error.errno in _FULL
