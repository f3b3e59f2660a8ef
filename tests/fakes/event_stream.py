"""Server-sent events as a client reads them."""

import json


def read_events(body: str) -> list[tuple[str, dict[str, object]]]:
    """Return names and data of all events, without comments and without an incomplete last event."""
    events = []
    for block in body.split("\n\n")[:-1]:
        fields = [line.split(": ", 1) for line in block.split("\n") if not line.startswith(":")]
        if fields:
            named = dict(fields)
            assert list(named) == ["event", "data"]
            events.append((named["event"], json.loads(named["data"])))
    return events


def texts_of(body: str, num_texts: int) -> list[str]:
    """Return the assembled deltas of each text."""
    texts = [""] * num_texts
    for name, data in read_events(body):
        if name == "text":
            index, text = data["index"], data["text"]
            assert isinstance(index, int)
            assert isinstance(text, str)
            texts[index] += text
    return texts
