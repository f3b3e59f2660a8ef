from server.documents.job_store import PhaseClock


def test_phases_follow_each_other_and_add_up_to_the_time_in_all() -> None:
    now = [10.0]
    phases = PhaseClock(lambda: now[0], "queue")
    for phase, seconds in (("read", 1.0), ("write", 2.0), ("translate", 3.0), ("write", 4.0)):
        now[0] += seconds
        phases.enter(phase)
    now[0] += 5.0
    assert phases.seconds() == {"queue": 1.0, "read": 2.0, "write": 8.0, "translate": 4.0}
    assert list(phases.seconds()) == ["queue", "read", "write", "translate"]
    now[0] += 1.0
    assert phases.seconds()["write"] == 9.0
