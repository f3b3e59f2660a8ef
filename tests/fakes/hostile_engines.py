"""Rules of models that write machine-readable spans as badly as a model can, and notations of such spans."""

import re
from collections.abc import Callable, Mapping

NOTATIONS: Mapping[str, str] = {
    "address": "https://example.org/a_(b)?c=d&e=%20f#g",
    "bare address": "docs.example.com/help",
    "mail": "anna.k+test@mail.example.org",
    "braces": "{name}",
    "two braces": "{{ user.first_name }}",
    "shell": "${HOME_DIR}",
    "ruby": "%{count}",
    "printf": "%1$s",
    "python": "%(total)d",
    "flags": "%-8.3f",
    "dollar": "$USER_NAME",
    "percent fence": "%PATH%",
    "dollar fence": "$AMOUNT$",
    "hash fence": "##NAME##",
    "underscore fence": "__name__",
    "wiki": "[[user name]]",
    "merge tag": "*|FNAME|*",
    "erb": "<%= @user.name %>",
    "jinja": "{% if x %}",
    "i18next": '$t(items, {"count": {{n}} })',
    "message": "{n, number, integer}",
    "code": "`git commit -m x`",
    "path": "/usr/local/bin/python3",
    "windows path": r"C:\Users\anna\x.txt",
    "file": "report_v2.tar.gz",
    "option": "--dry-run",
    "identifier": "max_token_count",
    "part number": "AB-1234-X9",
    "version": "v1.2.3-rc.1",
    "account": "DE89 3704 0044 0532 0130 00",
    "hashtag": "#kvasir_news",
    "mention": "@anna_k",
    "emoji": "👩‍💻",
    "exponent": "CO₂",
}

_ODD = re.compile(r"[^\w\s]|\d|_")
_MASK = re.compile(r"\bX\d\b")
_WORD = re.compile(r"\S+")

# What a model makes of a sentence that it reads.
HOSTILE: Mapping[str, Callable[[str], str]] = {
    "copies": str,
    "drops signs and digits": lambda text: _ODD.sub("", text),
    "puts blanks around signs": lambda text: _ODD.sub(lambda match: f" {match[0]} ", text),
    "doubles words": lambda text: _WORD.sub(lambda match: f"{match[0]} {match[0]}", text),
    "writes capitals": str.upper,
    "writes small letters": str.lower,
    "splits words": lambda text: re.sub(r"(\w)(\w)", r"\1 \2", text),
    "reverses words": lambda text: " ".join(reversed(text.split(" "))),
    "joins words": lambda text: text.replace(" ", ""),
    "drops masks": lambda text: _MASK.sub("", _ODD.sub("", text) if not _MASK.search(text) else text),
    "doubles masks": lambda text: _MASK.sub(r"\g<0> \g<0>", text) if _MASK.search(text) else _ODD.sub("", text),
    "writes nothing": lambda _: "",
    "repeats itself": lambda text: " ".join([text] * 3),
    "talks": lambda _: "I am a model { and } % say X1 X2 what $ I <b>want</b> https:// to `say` .",
}
