"""Code of templates in a page: PHP, ERB, JSP, Jinja, Liquid, Twig, Handlebars, Vue, Angular, Svelte, Go, Blade,
Smarty, FreeMarker, Thymeleaf.

A parser of HTML takes this code for text, comments or broken tags. It gets letters in its place, as many as the code
has characters, so that all positions are those of the page. Also data in front of it (YAML, TOML).
"""

from collections.abc import Iterator
from typing import NamedTuple

import regex

# Of a function, nested twice.
_ARGUMENTS = (
    r"\((?:[^()<>\n'\"=-]++|'[^'\n]*+'|\"[^\"\n]*+\"|[=-]>?|[<>]=?\s"
    r"|\((?:[^()<>\n=-]++|[=-]>?|\([^()<>\n]*+\))*+\))*+\)"
)
# Each pattern stops where its own beginning comes again, so that every character is read once or twice.
_CODE = regex.compile(
    r"<\?(?=php\b|=|\s)(?:[^?<]++|\?(?!>)|<(?!\?))*+(?:\?>|\Z)"
    r"|<%(?:[^%<]++|%(?!>)|<(?!%))*+%>"
    r"|\{%-?\s*+(?P<verbatim>comment|highlight|raw|verbatim)\b(?:[^%{]++|%(?!\})|\{(?!%))*+%\}"
    r"(?:[^{]++|\{(?!%-?\s*+end(?P=verbatim)\b))*+\{%-?\s*+end(?P=verbatim)\s*+-?%\}"
    r"|\{%(?:[^%{]++|%(?!\})|\{(?!%))*+%\}"
    r"|\{\#(?:[^\#{]++|\#(?!\})|\{(?!\#))*+\#\}"
    r"|\{!!(?:[^!{]++|!(?!!\})|\{(?!!!))*+!!\}"
    r"|\{\{!--(?:[^-{]++|-(?!-\}\})|\{(?!\{!--))*+--\}\}"
    r"|\{\{\{(?:[^{}]++|\}(?!\}\}))*+\}\}\}"
    r"|\{\{(?!\{)(?:[^{}]++|\{(?!\{)|\}(?!\}))*+\}\}"
    r"|</?[\#@][A-Za-z](?:[^<>\"']++|<(?![\#@/])|\"[^\"<>]*+\"|'[^'<>]*+')*+>|\$\{[^{}<>\n]++\}"
    r"|\{[\#:/@](?=[a-z])(?:[^{}<>\n=]++|=>?|[<>]=?\s)*+\}|\[\[\$\{[^{}<>\n]++\}\]\]"
    r"|\{(?:assign|block|else|elseif|extends|for|foreach|foreachelse|if|include|section|while)(?:\s(?:[^{}<>\n=]++|=>?|[<>]=?\s)*+)?\}"
    rf"|(?<![\w@])@(?:(?:else|else-?if|for|foreach|forelse|if|isset|switch|unless|while)\s)?+(?:[a-zA-Z]++)?+{_ARGUMENTS}"
    r"(?!\s*+\{(?!\{))"
    r"|(?<![\w@])@(?:break|continue|csrf|default|else|parent|show|stop|end[a-z]++)\b"
    r"(?!\s*+(?:\(|\{(?!\{)|if\s*+\()|\.\w|@)"
    r"|(?<!\w)@(?:case|default|defer|else|empty|error|for|if|loading|placeholder|switch)\b[^{}\n@]*+\{(?!\{)"
    # An attribute: a tag does not end at the arrow of its function.
    r"|(?<=[\w\])]=)\{(?:[^{}<]++|<[\s=]|\{(?:[^{}<]++|<[\s=])*+\})*+\}"
)
# What shows a value is part of a sentence; other code, such as a condition or a loop, divides it.
_VALUE = regex.compile(
    r"<\?=|<\?php\s++(?!(?:break|case|continue|default|do|else|elseif|end[a-z]++|for|foreach|function|if|include|require"
    r"|return|switch|use|while)(?:_once)?\b|[}/#*]|\$\w++\s*+=(?!=))"
    r"|<%[=-]|\$\{|\[\[|\{@|\{!!|\{\{\{?[-~]?\s*+(?![!#/^>]|(?:block|define|else|end|if|range|template|with)\b)"
)
# YAML or TOML in front of a page, with the lines around it.
_FRONT_MATTER = regex.compile(r"(---|\+\+\+)[ \t]*+\r?\n(?:[^\n]*+\n)*?\1[ \t]*+(?:\r?\n|\Z)")
_END_TAG = regex.compile(r"</[A-Za-z]")


class TemplateCode(NamedTuple):
    """A piece of code: its place in the page."""

    begin: int
    end: int
    is_value: bool


def end_of_front_matter(text: str) -> int:
    """Return where the text behind the data in front of a page begins."""
    front_matter = _FRONT_MATTER.match(text)
    return 0 if front_matter is None else front_matter.end()


def template_code(page: str) -> Iterator[TemplateCode]:
    """Yield the pieces of code of a page, in its order."""
    for found in _CODE.finditer(page):
        # Code in braces that reaches beyond the end of an element is braces in a script, or in a text.
        if found[0][0] != "{" or found["verbatim"] or _END_TAG.search(found[0]) is None:
            yield TemplateCode(found.start(), found.end(), _VALUE.match(found[0]) is not None)


def code_at(text: str, position: int) -> TemplateCode | None:
    """Return the code that begins at this position of a text, if any."""
    found = _CODE.match(text, position)
    return None if found is None else TemplateCode(found.start(), found.end(), _VALUE.match(found[0]) is not None)


def without_code(page: str, codes: list[TemplateCode]) -> str:
    """Return the page with letters in place of the code."""
    parts: list[str] = []
    position = 0
    for code in codes:
        parts += [page[position : code.begin], "x" * (code.end - code.begin)]
        position = code.end
    return "".join([*parts, page[position:]])
