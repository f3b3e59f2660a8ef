"""End of listening without resetting connections that clients have just opened."""

import ctypes
import os
import socket
import struct
from contextlib import suppress
from pathlib import Path

_SO_ATTACH_FILTER = 26  # https://man7.org/linux/man-pages/man7/socket.7.html
_SYN = 0x02
# A classic BPF program: it drops segments whose flags (byte 13 of the TCP header) begin a connection.
_INSTRUCTIONS = (
    (0x30, 0, 0, 13),  # load the byte
    (0x45, 0, 1, _SYN),  # skip the next instruction unless SYN is set
    (0x06, 0, 0, 0),  # drop
    (0x06, 0, 0, 0xFFFFFFFF),  # pass
)


def refuse_new_connections(listening: socket.socket) -> None:
    """Let no more connections begin. Those that have begun stay in the queue until they are accepted.

    Closing a listening socket resets the connections in its queue, whose clients may have sent their requests. Now
    clients repeat their first segment, and are refused after the socket is closed. Does nothing where the system has no
    such filter.
    """
    with suppress(OSError):
        if listening.family == socket.AF_UNIX:
            Path(os.fsdecode(listening.getsockname())).unlink(missing_ok=True)
            return
        program = b"".join(struct.pack("HBBI", *instruction) for instruction in _INSTRUCTIONS)
        buffer = ctypes.create_string_buffer(program)
        descriptor = struct.pack("HL", len(_INSTRUCTIONS), ctypes.addressof(buffer))
        listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, descriptor)
