"""Runs a command that does not outlive whoever started it: `python tethered.py COMMAND ...`.

A load test would otherwise go on sending when nobody waits for it any more, and a server that a comparison has stopped
between its turns would stay, and stay stopped.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # Linux's prctl: the signal to get when the parent process ends; kept when another program is run


def main() -> None:
    """Become the command. Only Linux ties it; elsewhere it is run as it is."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - the command is that of whoever started this


if __name__ == "__main__":
    main()
