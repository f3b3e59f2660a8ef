import json
import socket
import subprocess
import sys

import pytest

from server.documents.input.limits import MEGABYTE
from server.documents.isolation.messages import frame
from server.documents.isolation.process import _BOOTSTRAP

PATIENCE_SECONDS = 60


@pytest.mark.parametrize("sent", [b"", frame({"type": "nothing"}), frame({"type": "nothing"})[:-1]])
def test_a_process_whose_server_was_killed_ends_without_a_traceback(sent: bytes) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        ours.sendall(sent)
        ours.close()  # unread messages of the process then are a reset, and its next one breaks the pipe
        command = [sys.executable, "-c", _BOOTSTRAP, str(theirs.fileno()), str(64 * MEGABYTE), json.dumps(sys.path)]
        ended = subprocess.run(
            command, pass_fds=(theirs.fileno(),), capture_output=True, timeout=PATIENCE_SECONDS, check=False
        )
    assert (ended.stderr, ended.returncode) == (b"", 0)
