import pytest

from server.http.state import UnreadBytes
from server.interface.errors import QueueFull


def test_a_client_has_a_quarter_and_all_clients_the_whole_limit() -> None:
    unread = UnreadBytes(100)
    unread.add("a", 10)
    unread.check("a", 15)
    with pytest.raises(QueueFull, match="10 bytes of responses to this client are unread; read them first"):
        unread.check("a", 16)
    unread.add("b", 60)
    unread.add("c", 30)
    with pytest.raises(QueueFull, match="100 bytes of responses to all clients are unread; retry later") as full:
        unread.check("d")
    assert full.value.retry_after_seconds == 10
    unread.remove("c", 30)
    unread.add("a", 15)
    unread.remove("b", 20)
    assert unread.total == 65


def test_a_client_without_bytes_may_exceed_its_share() -> None:
    unread = UnreadBytes(100)
    unread.add("a", 100)
    unread.remove("a", 100)
    unread.add("a", 1)
    with pytest.raises(QueueFull):
        unread.add("a", 25)
    assert unread.total == 1


def test_other_things_than_responses_are_named_with_their_limit() -> None:
    unread = UnreadBytes(100, "glossaries in requests")
    unread.add("a", 20)
    with pytest.raises(QueueFull, match="20 of 25 bytes are taken by glossaries in requests of this client"):
        unread.add("a", 6)
    unread.add("b", 80)
    with pytest.raises(QueueFull, match="100 of 100 bytes are taken by glossaries in requests of all clients"):
        unread.add("c", 1)
