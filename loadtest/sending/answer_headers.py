"""Headers of answers that contain times."""


def server_timing(header: str) -> dict[str, float]:
    """Return the durations in a Server-Timing header by name, in milliseconds (https://www.w3.org/TR/server-timing/)."""
    durations = {}
    for metric in header.split(","):
        name, *parameters = (part.strip() for part in metric.split(";"))
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip().lower() == "dur":
                try:
                    durations[name] = float(value.strip().strip('"'))
                except ValueError:
                    continue
    return durations


def retry_after_seconds(header: str | None) -> float | None:
    """Return the seconds in a Retry-After header; None without the header or for a date."""
    try:
        return None if header is None else max(float(header), 0.0)
    except ValueError:
        return None
