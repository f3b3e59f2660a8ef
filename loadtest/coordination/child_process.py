"""A command that does not outlive its parent process: `python child_process.py COMMAND ...`.

Otherwise a load test would keep sending after its parent was killed, and a server that a comparison paused would
remain, still paused.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # Linux prctl: signal at the end of the parent process; survives exec


def main() -> None:
    """Replace this process by the command. The link to the parent exists only on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - the parent process passes the command


if __name__ == "__main__":
    main()
