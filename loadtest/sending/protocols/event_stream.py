"""Parser of server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `name` is "message" by default."""

    name: str
    data: str


class EventReader:
    """Incremental parser of one stream; chunks may end anywhere."""

    def __init__(self) -> None:
        self._unread = bytearray()
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that this chunk completes. Comments and heartbeats are no events."""
        self._unread += chunk
        # A carriage return at the end may be half of a line break; the next chunk decides.
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
