"""Recognition of lines of source code, and of commands, among sentences."""

import re

# Signs of code that no sentence has. Each occurrence counts.
_STRONG = re.compile(
    r"[=!<>]=|[-=]>|::|&&|\|\||\+\+|\+=|-=|</?\w+[^<>]*>|[{}]\s*$|;\s*$|\w\(\)|\w\[\w*\]|^\s*[@#$]\s?\w+"
    r"|\b\w+\.\w+\(|\b\w+\s?\([^()]*\)\s*[:;{]|^\s*(?://|/\*|\*/|#!|<!--)|\s--?\w[\w-]*(?=\s|=|$)|\$\{?[A-Za-z_]|\s\|>\s\w"
    r"|^\s*[\w.]+\s*[-+*/|]?=\s*\S|^\s*\"[^\"]*\"\s*:\s*\S"
)
# Signs that sentences have sometimes.
_WEAK = re.compile(r"[{}\[\]<>=_|\\`$]|\b[a-z]+[A-Z]\w*|\b\w+_\w+|\w\(|\w/\w|\w\.\w")
_KEYWORD = re.compile(
    r"^\s*(?:import\s+[\w.]+(?:\s+as\s+\w+|\s*,\s*[\w.]+)*;?\s*$|\"[^\"]*\"\s*:\s*\S|import\b.*\bfrom\s+['\"]|from\s+[\w.]+\s+import\b|(?:async\s+)?def\s+\w+\s*\("
    r"|class\s+\w+\s*[:({]|return\b.*(?:;|\(|_|\w\.\w)|(?:if|for|while|switch)\s*\(.*\)\s*[{;:]?\s*$"
    r"|for\s+\w+(?:\s*,\s*\w+)*\s+in\s.*:\s*$|(?:else|try|finally)\s*[:{]\s*$|with\s.*\sas\s+\w+:\s*$"
    r"|(?:var|let|const|int|float|double|char|bool|void|string|auto)\s+\w+\s*(?:=|;|\[|\()|#include\b|func\s+\w+\s*\("
    r"|(?:public|private|protected|static)\s+(?:(?:static|final)\s+)*(?:class|void|int|bool|String|\w+\s+\w+\s*[(;=])"
    r"|(?:using|package|namespace)\s+[\w.:]+\s*[;{]|(?:struct|enum|interface)\s+\w+\s*\{|fn\s+\w+\s*[(<]"
    r"|(?:SELECT\b.*\bFROM|INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+(?:TABLE|INDEX)|DROP\s+TABLE)\b"
    r"|(?:sudo|apt|apt-get|pip|npm|git|docker|kubectl|curl|wget|mkdir|chmod|ssh|systemctl)\s+[-./\w$\"'])"
)
_SIGN = re.compile(r"[{}()\[\]<>=;_$|`\\#@]|\"\s*:|::| -|//|\w\.\w|^\s*(?:[a-z]|[A-Z]{4})")
_SENTENCE_END = re.compile(r"[.?!…][\"'”“»)]*\s*$")
_WORD = re.compile(r"[^\W\d_]{2,}")
_MAX_CHARACTERS = 400  # lines of code are shorter, and the expressions take time that grows with the length
_MIN_SCORE = 3
_WORDS_PER_SIGN = 2  # a sentence about code has more words between its signs
_MAX_PROSE = 1  # function words that are no keywords of a programming language
KEYWORDS = frozenset(
    (
        "for", "in", "if", "not", "and", "or", "from", "is", "with", "as", "while", "do", "this", "all", "on",
        "by", "into", "to", "where", "when", "then", "else", "use", "let", "no", "set", "can", "will",
    )
)  # fmt: skip


def is_code(text: str, function_words: frozenset[str] = frozenset()) -> bool:
    """Return whether a text is a line of source code or a command, and not a sentence with code in it.

    Sentences have `function_words` of their language.
    """
    if len(text) > _MAX_CHARACTERS or _SIGN.search(text) is None:
        return False
    num_strong, num_weak = len(_STRONG.findall(text)), len(_WEAK.findall(text))
    has_keyword = _KEYWORD.match(text) is not None
    if not has_keyword and not num_strong:
        return False
    if len({word.lower() for word in _WORD.findall(text)} & function_words - KEYWORDS) > _MAX_PROSE:
        return False
    score = _MIN_SCORE * has_keyword + 2 * num_strong + num_weak
    if _SENTENCE_END.search(text):
        score -= 2
    num_words = len(_WORD.findall(text))
    return score >= _MIN_SCORE and num_words <= _WORDS_PER_SIGN * (num_strong + num_weak + 2 * has_keyword)
