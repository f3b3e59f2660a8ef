"""The LibreTranslate-compatible protocol, with engines that answer with their source."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from server.http.app import create_app
from server.interface.errors import EngineFailed, QueueFull
from server.interface.request import FinishReason
from server.operations.settings import Settings
from tests.fakes.echo import EchoFor, EchoGenerator

ENGLISH, GERMAN = "Where is the railway station?", "Wo ist der Bahnhof? Er ist hier."


@pytest.fixture
def echoes(echo_for: EchoFor) -> list[EchoGenerator]:
    return [echo_for("en", "de"), echo_for("de", "en"), echo_for("en", "pt-BR")]


@pytest.fixture
def client(echoes: list[EchoGenerator]) -> Iterator[TestClient]:
    settings = Settings(max_texts=5, max_text_characters=1000, max_body_bytes=20_000)
    with TestClient(create_app(settings, echoes)) as client:
        yield client


def test_a_text_in_json_in_a_form_and_in_the_query(client: TestClient) -> None:
    fields = {"q": ENGLISH, "source": "en", "target": "de", "api_key": ""}
    answers = [
        client.post("/translate", json=fields | {"api_key": None}),
        client.post("/translate", data=fields),
        client.post("/translate", files={name: (None, value) for name, value in fields.items()}),
        client.post("/translate", params=fields),
    ]
    for answer in answers:
        assert (answer.status_code, answer.json()) == (200, {"translatedText": ENGLISH}), answer.text


@pytest.mark.parametrize(
    "text", ["Größe, Übermut", "Gr%C3%B6%C3%9Fe,+Übermut", "Größe%2C%20%C3%9Cbermut", "Größe, Übermut&q=&x"]
)
def test_a_form_may_have_its_letters_as_they_are(client: TestClient, text: str) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
    answer = client.post("/translate", content=f"source=en&target=de&q={text}".encode(), headers=headers)
    translated = answer.json()["translatedText"]
    assert (translated[0] if "&q=" in text else translated) == "Größe, Übermut"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"source=en&target=de&q=Gr\xf6\xdfe", "the form or query is not UTF-8: "),
        (b"source=en&target=de&q=Gr%F6%DFe", "the form or query is not UTF-8: "),
        (b"&".join([b"q=a"] * 56), "Too many fields. Maximum number of fields is 55."),
    ],
)
def test_a_form_that_cannot_be_read_is_refused(client: TestClient, content: bytes, message: str) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = client.post("/translate", content=content, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(message)


def test_a_batch_keeps_its_order_and_its_blank_items(client: TestClient) -> None:
    texts = [ENGLISH, "", "Tea.", " "]
    answer = client.post("/translate", json={"q": texts, "source": "en", "target": "de"})
    assert answer.json() == {"translatedText": texts}
    one = client.post("/translate", json={"q": ["Tea."], "source": "en", "target": "de"})
    assert one.json() == {"translatedText": ["Tea."]}
    for name in ("q", "q[]"):
        form = client.post("/translate", data={name: ["Tea.", "Water."], "source": "en", "target": "de"})
        assert form.json() == {"translatedText": ["Tea.", "Water."]}


def test_every_item_of_a_batch_has_a_language_of_its_own(client: TestClient, echoes: list[EchoGenerator]) -> None:
    texts = [GERMAN, "🎉", ENGLISH]
    answer = client.post("/translate", json={"q": texts, "source": "auto", "target": "pt"}).json()
    assert answer["translatedText"] == texts
    assert [each["language"] for each in answer["detectedLanguage"]] == ["de", "en", "en"]
    confidences = [each["confidence"] for each in answer["detectedLanguage"]]
    assert all(isinstance(confidence, int) for confidence in confidences)
    assert confidences[0] > 90
    assert confidences[1] == 0
    assert echoes[1].batches  # the German one went through English


def test_one_text_has_one_detected_language_and_only_for_auto(client: TestClient) -> None:
    answer = client.post("/translate", data={"q": GERMAN, "source": "auto", "target": "en"}).json()
    assert answer["detectedLanguage"]["language"] == "de"
    assert client.post("/translate", data={"q": "😀 ", "source": "auto", "target": "en"}).json() == {
        "translatedText": "😀 ",
        "detectedLanguage": {"confidence": 0, "language": "en"},
    }


def test_alternatives_are_others_and_come_only_when_asked_for(client: TestClient) -> None:
    fields = {"q": "Tea please.", "source": "en", "target": "de", "alternatives": 3}
    answer = client.post("/translate", json=fields).json()
    assert answer["alternatives"]
    assert answer["translatedText"] not in answer["alternatives"]
    assert len(set(answer["alternatives"])) == len(answer["alternatives"]) <= 3
    batch = client.post("/translate", json=fields | {"q": ["Tea please.", ""]}).json()
    assert [len(each) for each in batch["alternatives"]] == [3, 0]
    for none in (None, 0, -1, "", "0"):
        assert "alternatives" not in client.post("/translate", json=fields | {"alternatives": none}).json()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "Invalid request: missing q parameter"),
        ({"q": "a", "source": "zz", "target": "xx"}, "zz is not supported"),
        (
            {"q": "a", "source": "pb", "target": "de"},
            "German (de) is not available as a target language from Brazilian Portuguese (pt-BR)",
        ),
        (
            {"q": ["a"] * 6, "source": "en", "target": "de"},
            "Invalid request: request (6) exceeds text limit (5)",
        ),
        ({"q": ["a", None], "source": "en", "target": "de"}, "Invalid request: `q` item 1 must be a string"),
    ],
)
def test_errors_have_the_wording_of_the_protocol(client: TestClient, fields: dict[str, object], message: str) -> None:
    answer = client.post("/translate", json=fields)
    assert (answer.status_code, answer.json()) == (400, {"error": message})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "Invalid JSON format"),
        ("{", "the body is not JSON"),
        ("[" * 100_000, "the body"),
        (b'{"q": "\xff"}', "the body is not JSON"),
    ],
)
def test_a_body_that_is_no_json_object_is_refused(client: TestClient, content: str | bytes, message: str) -> None:
    answer = client.post("/translate", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 413)
    assert answer.status_code == 413 or answer.json()["error"].startswith(message)


def test_failures_have_the_protocols_shape_too(client: TestClient, echoes: list[EchoGenerator]) -> None:
    fields = {"q": "Tea.", "source": "en", "target": "de"}
    echoes[0].error = QueueFull("full", 2.1)
    full = client.post("/translate", json=fields)
    assert (full.status_code, full.headers["Retry-After"], full.json()) == (429, "3", {"error": "full"})
    for error in (EngineFailed("a step failed"), RuntimeError("/somewhere/private")):
        echoes[0].error = error
        failed = client.post("/translate", json=fields)
        assert failed.status_code == 500
        assert set(failed.json()) == {"error"}
        assert "private" not in failed.text
    echoes[0].error, echoes[0].finish_reason = None, FinishReason.DEADLINE
    late = client.post("/translate", json=fields)
    assert (late.status_code, list(late.json())) == (504, ["error"])
    large = client.post("/translate", json=fields | {"q": "x" * 30_000})
    assert (large.status_code, list(large.json())) == (413, ["error"])


def test_detection_is_a_list_with_the_best_first(client: TestClient) -> None:
    for answer in (
        client.post("/detect", data={"q": GERMAN}),
        client.post("/detect", json={"q": [GERMAN, "Guten Tag"]}),
    ):
        assert answer.json()[0]["language"] == "de"
        assert answer.json()[0]["confidence"] > 90
    assert client.post("/detect", data={"q": "Tea"}).json()[0]["confidence"] < 70
    assert client.post("/detect", data={"q": "12:30"}).json() == [{"confidence": 0, "language": "en"}]
    assert client.post("/detect", data={}).json() == {"error": "Invalid request: missing q parameter"}


def test_languages_have_their_targets(client: TestClient) -> None:
    languages = {each["code"]: each for each in client.get("/languages").json()}
    assert languages["de"] == {"code": "de", "name": "German", "targets": ["en", "pt-BR"]}
    assert languages["en"]["targets"] == ["de", "pt-BR"]
    assert languages["pt-BR"] == {"code": "pt-BR", "name": "Brazilian Portuguese", "targets": []}


def test_the_server_says_what_it_offers(client: TestClient) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    settings = client.get("/frontend/settings").json()
    assert settings["charLimit"] == 1000
    assert settings["language"]["target"] == {"code": "de", "name": "German"}
    refused = client.post("/suggest", data={"q": "a", "s": "b", "source": "en", "target": "de"})
    assert (refused.status_code, refused.json()) == (403, {"error": "Suggestions are disabled on this server."})
