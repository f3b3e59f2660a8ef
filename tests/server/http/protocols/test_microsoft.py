"""The Microsoft-compatible protocol, with engines that answer with their source."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from server.http.app import create_app
from server.operations.api_keys.key_file import KeyFile, KeyLimits
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator

ENGLISH, GERMAN = "Where is the railway station?", "Wo ist der Bahnhof? Er ist 300 Meter von hier."
VERSION = "api-version=3.0"


@pytest.mark.parametrize("path", ["/translate", "/microsoft/translate", "/translator/text/v3.0/translate"])
def test_each_target_gets_its_translation(compatible: TestClient, path: str) -> None:
    body = [{"Text": ENGLISH}, {"text": "Tea."}]
    answer = compatible.post(f"{path}?{VERSION}&from=en&to=de&to=zh-TW", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json() == [
        {"translations": [{"text": text, "to": "de"}, {"text": text, "to": "zh-TW"}]} for text in (ENGLISH, "Tea.")
    ]


@pytest.mark.parametrize("source", ["", "&from="])
def test_a_missing_source_is_detected_for_each_text(compatible: TestClient, source: str) -> None:
    answer = compatible.post(f"/translate?{VERSION}&to=de{source}", json=[{"Text": ENGLISH}, {"Text": GERMAN}]).json()
    assert [each["detectedLanguage"]["language"] for each in answer] == ["en", "de"]
    assert all(0 < each["detectedLanguage"]["score"] <= 1 for each in answer)
    assert [each["translations"][0]["text"] for each in answer] == [ENGLISH, GERMAN]


def test_the_later_version_has_targets_in_each_input(compatible: TestClient) -> None:
    inputs = [
        {"text": ENGLISH, "language": "en", "targets": [{"language": "de"}, {"language": "zh-Hant"}]},
        {"text": GERMAN, "targets": [{"language": "en", "tone": "formal"}]},
    ]
    answer = compatible.post("/translate?api-version=2026-06-06", json={"inputs": inputs}).json()
    first, second = answer["value"]
    assert first == {"translations": [{"text": ENGLISH, "language": "de"}, {"text": ENGLISH, "language": "zh-Hant"}]}
    assert second["translations"] == [{"text": GERMAN, "language": "en"}]
    assert second["detectedLanguage"]["language"] == "de"


def test_detection_and_sentences(compatible: TestClient) -> None:
    [german, nothing] = compatible.post(f"/detect?{VERSION}", json=[{"Text": GERMAN}, {"Text": "5"}]).json()
    assert german.pop("score") > 0.5
    assert german == {"language": "de", "isTranslationSupported": True, "isTransliterationSupported": False}
    assert nothing["score"] == 0
    text = "Good morning 😀. How are you?\nTea."
    [sentences] = compatible.post(f"/breaksentence?{VERSION}&language=en", json=[{"Text": text}]).json()
    assert sum(sentences["sentLen"]) == len(text) + 1  # the emoji has two code units
    assert len(sentences["sentLen"]) == 3


def test_languages_have_names_and_directions(compatible: TestClient) -> None:
    found = compatible.get("/languages?api-version=3.0&scope=translation%20").json()["translation"]
    assert found["de"] == {"name": "German", "nativeName": "Deutsch", "dir": "ltr"}
    assert set(found) == {"de", "en", "zh-Hant"}
    assert isinstance(compatible.get("/languages").json(), list)  # LibreTranslate


@pytest.mark.parametrize(
    ("query", "body", "code"),
    [
        ("to=ja", [{"Text": "Tea."}], 400019),
        ("to=de", {"Text": "Tea."}, 400000),
        ("to=de", [{"Text": "Tea. " * 500}], 400050),
        ("to=de", [{"Text": "a"}] * 21, 400000),
    ],
)
def test_errors_have_a_code_of_six_digits(compatible: TestClient, query: str, body: object, code: int) -> None:
    answer = compatible.post(f"/translate?{VERSION}&{query}", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("media_type", "body", "message"),
    [
        ("multipart/form-data; boundary=x", b'[{"Text": "Tea."}]', "must be JSON. Given: Content-Type: multipart"),
        ("application/json", b"[" * 10_000, "nested too deeply"),
    ],
)
def test_a_body_that_is_not_json_is_rejected(
    compatible: TestClient, media_type: str, body: bytes, message: str
) -> None:
    headers = {"Content-Type": media_type}
    answer = compatible.post(f"/translate?{VERSION}&from=en&to=de", content=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, 400000)
    assert message in answer.json()["error"]["message"]


def test_the_subscription_key_is_an_api_key(tmp_path: Path, echo: EchoGenerator) -> None:
    _, key = KeyFile(tmp_path / "keys.sqlite").add("team", KeyLimits())
    address, body = f"/translate?{VERSION}&from=en&to=de", [{"Text": "Tea."}]
    with TestClient(create_app(Settings(api_keys=tmp_path / "keys.sqlite"), [echo])) as client:
        headers = {"Ocp-Apim-Subscription-Key": key, "Ocp-Apim-Subscription-Region": "x"}
        assert client.post(address, json=body, headers=headers).status_code == 200
        rejected = client.post(address, json=body)
        assert (rejected.status_code, rejected.json()["error"]["code"]) == (401, 401000)
        assert client.get("/languages?api-version=3.0").status_code == 200


@pytest.mark.parametrize(("num_targets", "status"), [(0, 400), (1, 200), (20, 200), (21, 400)])
def test_targets_are_limited(compatible: TestClient, num_targets: int, status: int) -> None:
    targets = [f"de-x-{number}" for number in range(num_targets)]
    query = "&".join([VERSION, "from=en", *(f"to={each}" for each in targets)])
    assert compatible.post(f"/translate?{query}", json=[{"Text": "Tea."}]).status_code == status
    inputs = [{"text": "Tea.", "language": "en", "targets": [{"language": each} for each in targets]}]
    assert compatible.post("/translate?api-version=2026-06-06", json={"inputs": inputs}).status_code == status


def test_inputs_of_several_languages_keep_their_places(compatible: TestClient) -> None:
    inputs = [
        {"text": "Tea.", "language": "en", "targets": [{"language": "de"}]},
        {"Text": GERMAN, "language": "de", "targets": [{"language": "en"}]},
        {"text": "<b>Water</b>.", "language": "en", "textType": "html", "targets": [{"language": "de"}]},
        {"text": "Water.", "language": "en", "targets": [{"language": "zh-Hant"}, {"language": "de"}]},
        {"text": "5", "targets": [{"language": "de"}]},
    ]
    found = compatible.post("/translate?api-version=2026-06-06", json={"inputs": inputs}).json()["value"]
    texts = [[each["text"] for each in item["translations"]] for item in found]
    assert texts == [["Tea."], [GERMAN], ["<b>Water</b>."], ["Water.", "Water."], ["5"]]
    assert [item.get("detectedLanguage") for item in found] == [*[None] * 4, {"language": "en", "score": 0}]
