"""Server-sent events as a client reads them."""

import json


def read_events(body: str) -> list[tuple[str, dict[str, object]]]:
    """Names and data of all events, comments left out. An event that is not ended does not count."""
    events = []
    for block in body.split("\n\n")[:-1]:
        fields = [line.split(": ", 1) for line in block.split("\n") if not line.startswith(":")]
        if fields:
            named = dict(fields)
            assert list(named) == ["event", "data"]
            events.append((named["event"], json.loads(named["data"])))
    return events


def texts_of(body: str, num_texts: int) -> list[str]:
    """The pieces of each text, put together."""
    texts = [""] * num_texts
    for name, data in read_events(body):
        if name == "text":
            index, text = data["index"], data["text"]
            assert isinstance(index, int)
            assert isinstance(text, str)
            texts[index] += text
    return texts
