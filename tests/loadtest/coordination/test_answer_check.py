from loadtest.coordination.answer_check import AnswerSample, SampledAnswer, check_answers
from loadtest.sending.addresses import address_of
from loadtest.workload.requests import request_sequence
from loadtest.workload.scenario import Kind, Scenario, Stage
from tests.loadtest.answering import Reply, answering

SCENARIO = Scenario(
    name="guarded",
    description="",
    kinds=(Kind(name="sentence"), Kind(name="list", text="list")),
    stages=(Stage(name="only", rate=1, seconds=1),),
)
ANSWERS = [SampledAnswer("only", number, ("text",)) for number in range(50)]


def test_a_sample_is_the_same_however_the_answers_were_shared_out() -> None:
    whole, first, second, merged = (AnswerSample(10, seed=1) for _ in range(4))
    for answer in ANSWERS:
        whole.offer(answer)
        (first if answer.number % 3 else second).offer(answer)
    for part in (second, first):
        merged.merge(part.answers(), part.population)
    assert merged.answers() == whole.answers()
    assert len(whole.answers()) == 10
    assert merged.population == whole.population == 50


def _kept(numbers: range) -> AnswerSample:
    """Return an answer of the small server under load."""
    request = request_sequence(SCENARIO, 1, "only")
    sample = AnswerSample(100, 1)
    for number in numbers:
        sample.offer(SampledAnswer("only", number, tuple(text.upper() for text in request(number).texts)))
    return sample


def test_the_same_requests_are_repeated_without_the_cache() -> None:
    with answering() as server:
        result = check_answers(_kept(range(12)), SCENARIO, 1, address_of(server.url))
    assert (result.checked, result.identical, result.population, result.share) == (12, 12, 12, 1.0)
    assert {body["cache"] for body in server.bodies} == {"no-cache"}
    request = request_sequence(SCENARIO, 1, "only")
    asked = [body["text"] for body in server.bodies]
    expected = [request(number).texts for number in range(12)]
    assert asked == [list(texts) if len(texts) > 1 else texts[0] for texts in expected]


def test_an_answer_that_differs_in_one_letter_is_reported_with_both_texts() -> None:
    def slip(texts: list[str], number: int) -> Reply | None:
        return Reply(body=b'{"translations": [{"text": "Other."}]}') if len(texts) == 1 else None

    with answering(slip) as server:
        result = check_answers(_kept(range(8)), SCENARIO, 1, address_of(server.url))
    request = request_sequence(SCENARIO, 1, "only")
    single = [number for number in range(8) if len(request(number).texts) == 1]
    assert [difference.number for difference in result.different] == single
    assert result.identical == 8 - len(single)
    assert result.share == result.identical / 8
    first = result.different[0]
    assert (first.offline, first.under_load) == ("Other.", first.text.upper())


def test_requests_without_a_second_answer_are_counted_by_reason_and_not_compared() -> None:
    def trouble(texts: list[str], number: int) -> Reply | None:
        return Reply(hangs_up=True) if number < 2 else Reply(429) if number < 4 else None

    with answering(trouble) as server:
        result = check_answers(_kept(range(5)), SCENARIO, 1, address_of(server.url))
    # On the existing connection, and once more on a new one; then the other requests.
    assert result.unanswered == {"HTTP 429": 2, "no answer: RemoteDisconnected": 1}
    assert (result.checked, result.identical, result.share, result.different) == (2, 2, 1.0, ())
