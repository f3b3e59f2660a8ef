"""Lines that are not to be translated, drawn from a grammar: code, names, other languages, letters without sense."""

import random
from collections.abc import Callable, Mapping

_WORDS = (
    "user", "order", "value", "result", "count", "index", "path", "name", "buffer", "config", "client", "token",
    "row", "cache", "limit", "state", "node",
)  # fmt: skip
_CODE = (
    "for {a} in range({n}):", "for (let {a} = 0; {a} < {n}; {a}++) {{", "if ({a} == null) return;", "return {a}.{b};",
    "const {a} = await {b}({n});", "import {a} from './{b}';", "from {a} import {b}", "def {a}({b}, {c}):",
    "    self._{a} = {b}", "public static void {a}(String {b}) {{", "printf(\"%d\\n\", {a});",
    "std::vector<int> {a}({n});", "SELECT {a}, {b} FROM {c} WHERE id = {n};", "UPDATE {a} SET {b} = {n};",
    "git commit -am {a}", "docker run -p {n}:80 {a}", "pip install --upgrade {a}", "kubectl get pods -n {a}",
    "<div class=\"{a}\">{b}</div>", "{a}: [{n}, {n}],", "\"{a}\": \"{b}\",", "}}", "assert {a} == {b}[{n}]",
    "let {a}: Vec<{b}> = Vec::new();", "export {a}_{b}=${{{c}}}", "#include <{a}.h>", "while ({a} && !{b}) {{",
    "{a}.{b}({c});", "// {a}({b})", "x = [{a} for {a} in {b} if {a} > {n}]",
    "try {{ {a}(); }} catch (e) {{ {b}(e); }}", "@{a}('/{b}')", "curl -X POST localhost:{n}/{a}", "{a} |> {b} |> {c}",
)  # fmt: skip
_FIRST = (
    "Anna", "Peter", "Maria", "John", "Laura", "Thomas", "Emma", "David", "Julia", "Martin", "Sofia", "Daniel",
    "Clara", "Robert", "Nina", "Paul",
)  # fmt: skip
_LAST = (
    "Schmidt", "Miller", "Rossi", "Dubois", "Garcia", "Novak", "Jansen", "Larsen", "Kowalski", "Tanaka", "Silva",
    "Meyer", "Johnson", "Moretti", "Weber", "Clark", "Fischer", "Andersson",
)  # fmt: skip
_OTHERS = (
    "Je voudrais réserver une table pour deux personnes.", "Le train part à huit heures du matin.",
    "Nous avons perdu les clés de la voiture.", "Il fait très froid dans cette maison.",
    "¿Dónde está la estación de tren?", "Mañana vamos a comprar un coche nuevo.", "No quiero comer más pescado hoy.",
    "Mi hermana trabaja en un hospital grande.", "Vorrei un bicchiere di vino rosso, per favore.",
    "Domani andiamo al mare con i nostri amici.", "Non so dove ho messo il telefono.",
    "Obrigado pela sua ajuda, foi muito bom.", "A minha irmã mora em Lisboa há três anos.",
    "Ik heb gisteren een nieuw boek gekocht.", "Waarom ben je vandaag niet naar school gegaan?",
    "Dziękuję bardzo za pomoc, to było miłe.", "Jutro pojedziemy nad morze całą rodziną.",
    "Jag har bott i den här staden i tio år.", "Kan du hjälpa mig med den här uppgiften?",
    "Я не понимаю, что вы говорите.", "Мы живём в маленьком городе.", "Завтра будет хорошая погода.",
    "今日はとても暑いですね。", "我不知道他在哪里。", "오늘은 날씨가 좋습니다.", "Πού είναι ο σταθμός;", "أين المحطة؟",
)  # fmt: skip
_SYMBOLS = ("***", "§", "→", "-----", "…", "• • •", "=====", "?!", "(*)", "★ ★ ★")
_LABELS = (
    "OK", "Berlin", "iPhone 17", "Wi-Fi", "New York", "Menu", "Angela Merkel", "Windows 11", "USB-C", "Hamburg", "TV",
    "Frankfurt am Main", "PDF", "Google Maps", "Mercedes-Benz",
)  # fmt: skip
_KEYS = ("qwertzuiop", "asdfghjkl", "yxcvbnm", "abcdefghijklmnopqrstuvwxyz")


def code(draw: random.Random) -> str:
    """Return a line of a program, a query, markup or a command."""
    a, b, c = draw.sample(_WORDS, 3)
    return draw.choice(_CODE).format(a=a, b=b, c=c, n=draw.randint(2, 900))


def names(draw: random.Random) -> str:
    """Return a list of names of people."""
    people = [f"{draw.choice(_FIRST)} {draw.choice(_LAST)}" for _ in range(draw.randint(2, 5))]
    return ", ".join(people)


def other_language(draw: random.Random) -> str:
    """Return a sentence in neither English nor German."""
    return draw.choice(_OTHERS)


def letters(draw: random.Random) -> str:
    """Return letters as a cat on the keyboard types them."""
    row = draw.choice(_KEYS)
    return " ".join("".join(draw.choices(row, k=draw.randint(3, 9))) for _ in range(draw.randint(2, 6)))


def repeated_word(draw: random.Random) -> str:
    """Return one word 200 times."""
    return " ".join([draw.choice(_WORDS)] * 200)


def symbols(draw: random.Random) -> str:
    """Return a line without letters."""
    return draw.choice(_SYMBOLS)


def label(draw: random.Random) -> str:
    """Return a name or a short label, which is no sign of a language."""
    return draw.choice(_LABELS)


KINDS: Mapping[str, Callable[[random.Random], str]] = {
    "code": code,
    "list of names": names,
    "other language": other_language,
    "letters": letters,
    "one word 200 times": repeated_word,
    "symbols": symbols,
}
