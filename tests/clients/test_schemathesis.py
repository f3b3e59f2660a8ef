"""The whole OpenAPI description, with all that it allows and forbids: no 5xx, and no answer that is not described."""

from pathlib import Path

from tests.clients.environments import python_environment, run

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "negative_data_rejection",
)
NUM_EXAMPLES = 30  # of each operation and phase
# A request may allow a millisecond for its answer; then 504 is right.
CONFIGURATION = """
[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", "504"]
"""


def test_every_operation_answers_what_it_says(url: str, tmp_path: Path) -> None:
    programs = python_environment("schemathesis==4.32.5")
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION, encoding="utf-8")
    options = ("--max-examples", str(NUM_EXAMPLES), "--seed", "1", "--continue-on-failure", "--warnings", "off")
    command = (str(programs / "schemathesis"), "run", f"{url}/openapi.json", "--checks", ",".join(CHECKS))
    run(*command, *options, folder=tmp_path)
