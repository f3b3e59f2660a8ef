from datetime import UTC, datetime

from server.operations.api_keys.key_file import ApiKey, KeyLimits
from server.operations.metrics import Activity
from server.translation.types import Phases, TokenCounts, TranslationResult

KEY = ApiKey("id", "team", "", datetime(2026, 1, 1, tzinfo=UTC), None, None, KeyLimits())
RESULT = TranslationResult([], Phases(), TokenCounts.of([(3, 4), (5, 6)]), num_splits=0)


def test_requests_are_counted_by_model_and_by_key() -> None:
    activity = Activity()
    activity.count("en-de", KEY, 10, RESULT, is_rejected=False)
    activity.count("en-de", None, 10, RESULT, is_rejected=False)
    activity.count("en-de", KEY, 10, None, is_rejected=True)
    activity.count(None, KEY, 10, None, is_rejected=True)
    [(model, of_model)], [(key, of_key)] = activity.models.items(), activity.keys.items()
    assert (model, of_model.name, of_model.requests, of_model.rejected) == ("en-de", "en-de", 3, 1)
    assert (of_model.characters, of_model.source_tokens, of_model.target_tokens) == (20, 16, 20)
    assert (key, of_key.name, of_key.requests, of_key.rejected) == ("id", "team", 3, 2)
    assert (of_key.characters, of_key.source_tokens, of_key.target_tokens) == (10, 8, 10)


def test_names_of_models_are_bounded_and_known_ones_are_still_counted() -> None:
    activity = Activity()
    for number in range(1010):
        activity.count(str(number), None, 1, RESULT, is_rejected=False)
    activity.count("0", None, 1, RESULT, is_rejected=False)
    activity.count("1009", None, 1, RESULT, is_rejected=False)
    assert len(activity.models) == 1000
    assert activity.models["0"].requests == 2
