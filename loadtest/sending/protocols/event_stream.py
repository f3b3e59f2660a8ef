"""Server-sent events, read as they arrive: https://html.spec.whatwg.org/multipage/server-sent-events.html."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `name` is "message" where the server gave none."""

    name: str
    data: str


class EventReader:
    """Events out of chunks of bytes, wherever the chunks were cut. One stream each."""

    def __init__(self) -> None:
        self._unread = bytearray()
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that this chunk completes; comments and heartbeats are none."""
        self._unread += chunk
        # A carriage return at the very end may be half of a line break: it waits for what follows.
        end = len(self._unread) - self._unread.endswith(b"\r")
        whole = self._unread[:end].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = whole.split(b"\n")
        self._unread = rest + self._unread[end:]
        return [event for line in lines if (event := self._line(line.decode("utf-8", "replace")))]

    def _line(self, line: str) -> Event | None:
        if not line:
            event = Event(self._name or "message", "\n".join(self._data)) if self._data else None
            self._name, self._data = "", []
            return event
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
        return None
