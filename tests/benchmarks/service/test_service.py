from benchmarks.paths import DEFAULT_BUNDLE
from benchmarks.service.refusals import refusal_table
from benchmarks.service.requests import bodies, request_table


def test_every_protocol_is_measured() -> None:
    table = request_table(DEFAULT_BUNDLE, "en", "de", seconds=0.5, connections=2)
    lines = [line.split(" | ") for line in table.splitlines()[2:]]
    assert [line[0].removeprefix("| ") for line in lines] == list(bodies("en", "de"))
    assert all(float(requests) > 0 for _, requests, _ in lines)


def test_answers_and_probes_of_a_loaded_server_are_timed() -> None:
    table = refusal_table(DEFAULT_BUNDLE, num_clients=4, pause=0.05, seconds=0.5)
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:] if line.startswith("|")
    ]
    assert {line[0] for line in lines} >= {"probe", "status 200"}
    assert all(0 < float(line[2]) <= float(line[3]) <= float(line[4]) for line in lines)
