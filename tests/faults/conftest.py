"""The echo model of the server's own tests."""

from tests.server.conftest import echo, echo_bundle, echo_for

__all__ = ["echo", "echo_bundle", "echo_for"]
