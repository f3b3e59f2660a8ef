"""Four bundles in one folder, served by one process."""

from tests.end_to_end.servers import Served


def test_the_start_reports_what_models_are_good_for_before_it_listens(polyglot: Served) -> None:
    messages = [line["message"] for line in polyglot.lines]
    stated = [line for line in polyglot.lines if line["message"] == "demonstration model"]
    assert [line["model"] for line in stated] == ["de-en", "en-de", "en-es", "en-fr"]
    assert all("everyday sentences" in str(line["purpose"]) and "Tatoeba" in str(line["bleu"]) for line in stated)
    [better] = [line for line in polyglot.lines if line["message"] == "better translations"]
    assert better["command"] == "kvasir serve de-en en-de en-es en-fr"
    assert messages.index("listening") > messages.index("demonstration model")


def test_all_pairs_are_told_and_those_through_english_say_so(polyglot: Served) -> None:
    with polyglot.client() as client:
        pairs = {(each["source"], each["target"]): each for each in client.get("/v1/models").json()["pairs"]}
    assert set(pairs) == {("de", "en"), ("en", "de"), ("en", "es"), ("en", "fr"), ("de", "es"), ("de", "fr")}
    assert pairs["en", "fr"]["pivot"] is None
    assert pairs["de", "fr"] == {"source": "de", "target": "fr", "models": ["de-en", "en-fr"], "pivot": "en"}


def test_a_text_goes_through_english_and_the_answer_says_so(polyglot: Served) -> None:
    text = "Where is the station?"
    with polyglot.client() as client:
        first = client.post("/v1/translate", json={"text": text, "source": "de", "target": "en"}).json()
        in_between = first["translations"][0]["text"]
        second = client.post("/v1/translate", json={"text": in_between, "source": "en", "target": "fr"}).json()
        both = client.post("/v1/translate", json={"text": text, "source": "de", "target": "fr"}).json()
        assert both["translations"][0]["text"] == second["translations"][0]["text"]
        assert (both["model"], both["pivot"]) == ("de-en+en-fr", "en")
        assert "pivot" not in first
        refused = client.post("/v1/score", json={"text": "a", "translation": "b", "source": "de", "target": "fr"})
        assert refused.status_code == 422
        assert "through en" in refused.json()["error"]["message"]


def test_languages_are_detected_item_by_item(polyglot: Served) -> None:
    texts = ["Where is the railway station?", "Wo ist der Bahnhof, bitte schön?", "", "***"]
    with polyglot.client() as client:
        answer = client.post("/v1/translate", json={"text": texts, "source": "auto", "target": "fr"}).json()
    languages = [each.get("detected_language", {}).get("language") for each in answer["translations"]]
    assert languages == ["en", "de", None, None]
    assert [each["text"] for each in answer["translations"][2:]] == ["", "***"]
    assert set(answer["model"].split(", ")) == {"en-fr", "de-en+en-fr"}
