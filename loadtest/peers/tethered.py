"""Runs a command that does not outlive whoever started it: `python tethered.py COMMAND ...`.

A server that is stopped between its turns would otherwise stay stopped, and stay, when the harness is killed.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # Linux's prctl: the signal to get when the parent process ends; kept when another program is run


def main() -> None:
    """Become the command."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - the command is the harness's


if __name__ == "__main__":
    main()
