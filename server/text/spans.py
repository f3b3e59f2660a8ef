"""Machine-readable spans of a text, which must survive its translation character by character.

A span is found by its form alone, in any language: addresses, placeholders, paths, identifiers, emoji, and words with
characters that the vocabulary of a model lacks. Words, numbers, dates and signs are the model's.

Hostile texts must not take long: repetitions with an uncertain end are possessive or bounded.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import regex

from server.interface.interruption import checkpoint
from server.text.unknown_characters import UnknownCharacters


class SpanKind(StrEnum):
    """The kind of a span. A model copies all spans of a kind, or none."""

    ADDRESS = "address"  # https://example.org, me@example.org, example.org/help
    PLACEHOLDER = "placeholder"  # {name}, %s, $NAME, ##NAME##, <name>
    CODE = "code"  # between backticks
    ENTITY = "entity"  # &amp;
    PATH = "path"  # /usr/bin, C:\Windows, data.tar.gz
    NAME = "name"  # @name, #topic
    IDENTIFIER = "identifier"  # AB-1234, max_length, --verbose
    SYMBOL = "symbol"  # an emoji; a sentence is complete without it
    MARKUP = "markup"  # an element that is not translated; no model reads it
    UNKNOWN = "unknown"  # a word with characters that the vocabulary lacks; no model reads it


# The kinds that a model can read.
READABLE = frozenset(SpanKind) - {SpanKind.MARKUP, SpanKind.UNKNOWN}


@dataclass(frozen=True, slots=True)
class Span:
    """A span `text[start:end]`."""

    start: int
    end: int
    kind: SpanKind


_MAX_CHARACTERS = 2000  # a longer match is a mistake in the text rather than a span

# Letters of scripts that are written without blanks end an address.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\u3000-\u303f\uff00-\uffef"
_OUTSIDE = rf"\s\ufffc<>\"“”„«»{_UNSPACED}"
# Brackets belong to an address in pairs, and punctuation inside it.
_IN_BRACKETS = rf"[^{_OUTSIDE}(){{}}]*+"
_ADDRESS = (
    rf"(?:(?:[.,;:!?\]}}'’…]|\((?!{_IN_BRACKETS}\)))*+"
    rf"(?:\({_IN_BRACKETS}\)|\{{{_IN_BRACKETS}\}}|\[(?!/)|[^{_OUTSIDE}()\[.,;:!?\]}}'’…]))++"
)
_TOP_LEVEL = (
    r"(?:com|org|net|edu|gov|io|dev|app|info|biz|eu|de|at|ch|fr|es|it|nl|pl|pt|uk|co|us|ca|ru|jp|cn|br|in|be|se|dk|no|"
    r"fi|cz|gr|ie|hu|ro|tr|ua|kr|au|nz|mx|ar|za|il|tv|me|ai|int|museum|example)"
)
_EXTENSION = (
    r"(?:pdf|docx?|xlsx?|pptx?|od[tspg]|rtf|txt|csv|tsv|json|xml|html?|css|ya?ml|py|js|jsx|tsx?|c|cc|cpp|h|hpp|java|kt|"
    r"rs|go|rb|php|sql|sh|bat|ps1|exe|msi|deb|rpm|dmg|apk|jar|zip|gz|tgz|bz2|xz|zst|7z|rar|tar|iso|png|jpe?g|gif|svg|"
    r"webp|bmp|tiff?|heic|ico|mp[34]|m4a|wav|flac|ogg|avi|mkv|mov|webm|log|ini|cfg|conf|toml|md|po|srt|vtt|epub|mobi|"
    r"eml|bak|db|onnx)"
)
_SMALL = "a-zß-öø-ÿ"
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|\d\d?)"
_IN_BRACES = r"[^{}\n]"
_BRACES = rf"\{{(?:{_IN_BRACES}|\{{(?:{_IN_BRACES}|\{{(?:{_IN_BRACES}|\{{{_IN_BRACES}*+\}})*+\}})*+\}})*+\}}"
_CONVERSION = r"(?:hh|h|ll|l|q|L|z|t|j)?[diouxXeEfFgGcCsSapn@]"
_FLAGS = r"(?:\[\d{1,2}\])?+[-+0#',]*+(?:\d++|\*)?+(?:\.(?:\d++|\*))?+"
_NO_PERCENT = r"(?<!(?<!%)(?:%%){0,5}%)"  # of a conversion; `%%` in front is a sign of its own
_SMALL_DIGITS = "⁰¹²³⁴-⁹₀-₉"
# Letters that continue a word of Latin letters: those of other scripts may touch a span as words of their own.
_LATIN = r"\p{Latin}\d_"
_NAME = rf"(?:[^\W{_UNSPACED}]|[$@~+-])++"  # of a file or a folder
_END = rf"(?![{_LATIN}])"
_START = rf"(?<![{_LATIN}])"
_END_OR_S = rf"(?!(?!s{_END})[{_LATIN}])"  # an `s` may follow: `##NAME##s`
_END_OR_COMPOUND = rf"(?![{_LATIN}/]|-(?!\p{{Lu}}\p{{Ll}}))"  # or the other half of a compound: `AB-12-Datei`
# In front of a span: no full stop but that of an ellipsis, and no hyphen but that behind a word of another script.
_NO_STOP = r"(?<!(?<!\.\.)\.)"
_NO_HYPHEN = rf"(?<![{_LATIN}-]-)"
_FREE = rf"{_START}{_NO_STOP}{_NO_HYPHEN}"
_OPENED = rf"(?<![^\s(\[\"'“„«—–…{_UNSPACED}])"  # a blank or an opening mark
# In front of the digits of a version.
_VERSION = rf"(?:(?<![{_LATIN}~^])[~^]|(?<![{_LATIN}<>=!])[<>=!]=)?+(?<![{_LATIN},]){_NO_STOP}"
# Behind a version; not an ending, as agglutinative languages put behind a hyphen.
_RELEASE = r"[-+](?=[a-z]*+\.?\d|alpha|beta|rc|dev|pre|SNAPSHOT)[A-Za-z\d]++(?:\.[A-Za-z\d]++)*+"
# A chunk between blanks: with brackets in pairs, and without punctuation at its end.
_SIGN = rf"[^{_OUTSIDE}.,;:!?()\[\]'’—…]"
_IN_CHUNK = rf"(?:{_SIGN}|[<>]=|(?:::|[.,;:!?'’])(?={_SIGN}))"
_CHUNK = rf"(?:\({_IN_BRACKETS}\)|\[[^{_OUTSIDE}\[\]]*+\]|{_IN_CHUNK})++"
# A hyphen inside a name; behind one, a word with a capital is the other half of a compound: `@media-Regel`.
_HYPHEN = r"-(?!\p{Lu}\p{Ll})"

# The kinds with their patterns, one for each form, and what a text has if one of a row may match: any of some strings,
# or a short pattern. Of matches at one position the first counts.
_PATTERNS: Sequence[tuple[SpanKind, str | re.Pattern[str], str | tuple[str, ...]]] = (
    # `code` ``a `b` c`` `role`_; not `two' `quotations'
    (
        SpanKind.CODE,
        "`",
        rf"(?<![{_LATIN}`])(?P<ticks>`++)(?:(?=\S)[^\n]{{1,2000}}?(?<=[^\s`])|[ ][^\n]{{1,2000}}?[ ])"
        rf"(?P=ticks)(?!`)(?:__?)?+{_END_OR_S}",
    ),
    (
        SpanKind.ADDRESS,
        ":// www. mailto: tel: sms: urn: data: arn: doi: magnet: javascript:",
        (
            # Between blanks, letters of all scripts belong to it; not the particles of Korean.
            rf"(?<![^\s(\[\"'“„«])[a-z][a-z\d+.-]{{1,15}}+://(?=[^\s<>\"]{{0,500}}?[{_UNSPACED}])[^\s\ufffc<>\"“”„«»\p{{Hangul}}\u3000-\u303f\uff00-\uffef]{{1,500}}(?<![.,;:!?)\]}}'’…])(?=[.,;:!?)\]'’…]*+(?:\s|$))",
            rf"{_START}(?:[a-z][a-z\d+.-]{{1,15}}+://(?!-)|www\.|(?:mailto|urn|arn|javascript|magnet):|(?:tel|sms):(?=[+\d])|data:(?=\w++/)|doi:(?=\d)){_ADDRESS}",
        ),
    ),
    # me@example.org git@example.org:a/b.git
    (
        SpanKind.ADDRESS,
        "@",
        r"(?<![\p{Latin}\d+_%]|[\p{Latin}\d+_%][.-])@?(?=[\p{Latin}\d_])[\p{Latin}\d.%+_-]{1,64}+@[\p{Latin}\d-]{1,63}+(?:\.[\p{Latin}\d-]{1,63}+)*+"
        rf"(?::(?=[{_LATIN}.~-]++/)(?:[/:]?+[{_LATIN}~-]++|\.(?=[{_LATIN}]))++)?+(?![\p{{Latin}}@])",
    ),
    # IPv4 and IPv6 addresses with ports and networks, those of devices; DOIs
    (
        SpanKind.ADDRESS,
        re.compile(r"\.\d|:[\da-fA-F:]|-[\da-fA-F]{2}-"),
        (
            rf"{_START}{_NO_STOP}(?:{_OCTET}\.){{3}}{_OCTET}(?::\d{{1,5}}|/\d{{1,2}})?(?![{_LATIN}]|\.\d)",
            rf"(?<![{_LATIN}:]){_NO_STOP}\[?(?=[a-fA-F:]{{0,40}}\d)(?=[\da-fA-F:]{{0,40}}::[\da-fA-F]|[\da-fA-F:]{{1,40}}::|(?:[\da-fA-F]{{1,4}}:){{7}})(?:[\da-fA-F]{{0,4}}:){{2,7}}[\da-fA-F]{{0,4}}(?<!:::|[^:]:)(?:%\w++)?+(?:\](?::\d{{1,5}})?+|/\d{{1,3}})?+(?!:?[{_LATIN}]|::)",
            rf"{_START}(?:[\da-fA-F]{{2}}[:-]){{5}}[\da-fA-F]{{2}}{_END}",
            rf"{_START}localhost(?::\d{{1,5}})?+(?:/(?:{_ADDRESS})?)?{_END}",
            rf"{_START}{_NO_STOP}10\.\d{{4,9}}/{_ADDRESS}",
        ),
    ),
    # --verbose --out=x -v, and what has a sign inside that no word has: PATH=x a==1.2 a>=b a::b 10^6
    (
        SpanKind.IDENTIFIER,
        re.compile(r"--|=\S|::|\^\S|-(?<=[\s(\[\"'“„«]-)[A-Za-z]\b"),
        (
            rf"(?<![{_LATIN}-])--[a-z][{_LATIN}-]*+(?!=)",
            # Not the dash of a dialogue or of an insertion, nor an ending behind a quotation mark.
            rf"(?<=[^.!?:…»”\"']\s|[(\[“„«]|(?<!\S)[\"'])-[A-Za-z](?:/[{_LATIN}./-]*[{_LATIN}])?+(?![{_LATIN}-]|[^\n]{{0,200}}?[\p{{L}}\d]-(?![\w-]))",
            rf"{_OPENED}(?=(?:{_IN_CHUNK}|[(\[])*?[{_LATIN})\]](?:[=!<>~]?=|\^|::)[{_LATIN}(\[~/.-])(?![\[({{$@:']|[-+]?\d++=\p{{L}}){_CHUNK}",
        ),
    ),
    # \\server\share $HOME/bin %APPDATA%\x C:\temp D:/a
    (
        SpanKind.PATH,
        "/ \\",
        (
            rf"(?<![{_LATIN}\\])\\\\[\w.$-]++(?:\\[\w.$@~+-]++)++\\?",
            rf"(?<![{_LATIN}$%])(?:\$[A-Z_]++|\$\{{[A-Z_]++\}}|%[A-Z_]++%)(?:[/\\][{_LATIN}.~+-]*[{_LATIN}~+-])++[/\\]?",
            # A name of a folder may have blanks: C:\Program Files (x86)\app
            rf"{_START}[A-Za-z]:(?:\\(?:[\w$@~+.-]++(?: [\w().-]++){{0,3}}+\\)*+(?:{_NAME}(?:\.{_NAME})*+)?+"
            rf"|/(?:{_NAME}|[/.](?={_NAME}))*+)",
        ),
    ),
    # {\an8} {\pos(10,20)}: tags of subtitles, which touch their words
    (SpanKind.PLACEHOLDER, "{\\", r"\{(?:\\[1-4]?[A-Za-z]++[^\\{}\n]*+)++\}"),
    # \d+ \frac{1}{2} \(x\) [a-z]+ (?:a|b) $x^2$ \u00e9: regular expressions, formulas, escapes
    (
        SpanKind.CODE,
        "\\ $ (? [a-z [A-Z [0-9 [^",
        (
            r"\\\([^\n]{1,200}?\\\)",
            r"\\\([\w.]++\)",
            r"\\\[[^\n]{1,200}?\\\]",
            r"\\u[\da-fA-F]{4}",
            r"\\x[\da-fA-F]{2}",
            rf"(?<![{_LATIN}$])(?P<fence>\$\$?)(?=[^$\n]*[\\^_{{=])[^$\s](?:[^$\n]{{0,200}}[^$\s])?(?P=fence)(?![{_LATIN}$])",
            rf"{_OPENED}(?!\([^?]|')(?=[^{_OUTSIDE}—…]{{0,200}}?(?:\\(?:[A-Za-z]++[{{(\[]|(?![nrtux])[A-Za-z]|\d)|\(\?(?:[:=!<][^\s)]|[a-z]++[:)])|\[\^?(?:a-z|A-Z|0-9))){_CHUNK}",
        ),
    ),
    # <%= x %> <?= $x ?> [% x %] *|NAME|* <!-- x -->
    (
        SpanKind.PLACEHOLDER,
        "<% <? <! [% *|",
        (
            r"<%[^\n]{0,500}?%>",
            r"<\?[^\n]{0,500}?\?>",
            r"<!--[^\n]{0,500}?-->",
            r"<!\[CDATA\[[^\n]{0,500}?\]\]>",
            r"\[%[^\n]{0,500}?%\]",
            r"\*\|[\w:.-]{1,80}+\|\*",
        ),
    ),
    # $t(key) $(date)
    (SpanKind.PLACEHOLDER, "$", rf"(?<![{_LATIN}$])\$\w{{0,30}}+\((?:[^()\n]|\([^()\n]*+\))*+\)"),
    # {name} {{name}} ${NAME} %{name} #{name} @:{key} {% if %} {0}
    (SpanKind.PLACEHOLDER, "{", rf"(?:[$%#!^]|@(?:\.[a-z]+)?:?)?{_BRACES}"),
    # Fences of two signs: ##NAME## __NAME__ %%NAME%% $$name$$ <<name>>
    (
        SpanKind.PLACEHOLDER,
        "## __ %% @@ $$ !! ~~ ** == ^^ :: <<",
        (
            rf"(?P<fence>##|__|%%|@@|\$\$|::)[A-Za-z][\w.-]{{0,80}}?(?P=fence){_END_OR_S}",
            r"<<[A-Za-z][\w.:-]{0,60}+>>",
            rf"(?P<fence>!!|~~|\*\*|==|\^\^)[A-Z][A-Z\d_.-]*(?P=fence){_END_OR_S}",
        ),
    ),
    # Fences of one: %NAME% $NAME$ ~name~ @NAME@ ⟦name⟧ [first_name] [[name]]
    (
        SpanKind.PLACEHOLDER,
        "% $ @ # ! ~ ^ [ ⟦ ⟨",
        (
            rf"(?<![{_LATIN}%])%(?:[A-Z][A-Z\d_.-]+%(?=s{_END})|[A-Za-z][\w.-]*%(?![{_LATIN}%]))",
            rf"(?<![{_LATIN}$~^@])(?P<mark>[$~^@])[A-Za-z_][\w.-]*(?P=mark)(?![{_LATIN}])",
            rf"(?<![{_LATIN}@#!])(?P<mark>[#!])[A-Z][A-Z\d_.-]+(?P=mark){_END_OR_S}",
            r"\[\[[^\[\]\n]{1,200}+\]\]",
            r"\[\^[^\[\]\s]{1,60}+\]",
            r"\[[A-Za-z][A-Za-z\d]*+_\w*+\]",
            r"⟦[\w.:/-]{1,80}+⟧",
            r"⟨[\w.:/-]{1,80}+⟩",
        ),
    ),
    # %s %1$s %(name)s %<name>d %0:s %1% %|1$s| %.2f %'d %[1]d %d%% %1 %L1 %Y-%m; not 100%ige, nor %17 without a %1:
    # some languages write the sign in front
    (
        SpanKind.PLACEHOLDER,
        "%",
        (
            rf"%(?:\([\w.]++\)|<\w++>){_FLAGS}(?:{_CONVERSION}|[a-zA-Z])",
            rf"%\d{{1,2}}:-?+[\d.]*+[a-z]{_END}",
            rf"(?<![\d%])%(?:\d{{1,2}}%|\|[\w$+.-]{{1,12}}+\|)(?![{_LATIN}%])",
            rf"(?<!\d[ \u00a0\u202f]?){_NO_PERCENT}%(?:\d{{1,2}}\$)?+{_FLAGS}{_CONVERSION}",
            rf"{_NO_PERCENT}%(?:\d{{1,2}}\$)?+{_FLAGS}(?:{_CONVERSION}|[A-Za-z]){_END}",
            r"(?:(?<![\d.,])\d[\d.,]*+[ \u00a0\u202f]?)?%%",
            rf"(?<![{_LATIN}%])%(?:L\d{{1,2}}|1|(?<=%1(?!\d).{{0,300}}%)\d{{1,2}}|\d(?=.{{0,300}}%1(?!\d)))(?![{_LATIN}%])",
        ),
    ),
    # $NAME $user.name
    (
        SpanKind.PLACEHOLDER,
        "$",
        rf"(?<![{_LATIN}$])\$[A-Za-z_][{_LATIN}]*+(?:(?:\.|->|\$)[A-Za-z_][{_LATIN}]*+|\['[^'\n]{{1,60}}+'\]|\[\"[^\"\n]{{1,60}}+\"\])*+",
    ),
    # @:key @.lower:key :name :smile: :+1:
    (
        SpanKind.PLACEHOLDER,
        re.compile(r":[A-Za-z_+-]"),
        (
            rf"(?<![{_LATIN}@])@(?:\.[a-z]++)?:[\w-]++(?:\.[\w-]++)*+",
            rf"(?<![^\s(\[{{\"'“„«—–…{_UNSPACED}])(?:::?[A-Za-z_](?:[a-zA-Z\d_+]|{_HYPHEN})++:?|:[abcf-kmnq-wyz]|:[+-]1:){_END}",
        ),
    ),
    # <name>
    (SpanKind.PLACEHOLDER, "<", r"</?[A-Za-z][\w.:-]{0,60}+/?>"),
    # &amp; and tags with such: &lt;b&gt;
    (
        SpanKind.ENTITY,
        "&",
        (
            r"&lt;/?[A-Za-z][\w.:-]{0,60}+(?:\s(?:[^<>&\n]|&quot;|&\#39;){0,200}+)?+/?&gt;",
            r"&(?:#\d{1,7}+|#x[\da-fA-F]{1,6}+|[A-Za-z][A-Za-z\d]{1,31}+);",
        ),
    ),
    # example.com/help
    (
        SpanKind.ADDRESS,
        re.compile(r"\.[a-z]{2,24}[:/]"),
        rf"{_FREE}(?<![@/])(?:[\p{{Latin}}\d](?:[\p{{Latin}}\d-]{{0,62}}+)\.){{1,8}}+(?<=\.)(?:{_TOP_LEVEL}(?::\d{{1,5}}+)?/|[a-z]{{2,24}}/(?=\w))(?:{_ADDRESS})?",
    ),
    # ~/a/b ./a/b /usr/bin src/main/java *.txt text/html
    (
        SpanKind.PATH,
        "/ *.",
        (
            rf"(?<![{_LATIN}/])(?:~|\.{{1,2}})?(?:/(?:[a-zA-Z\d_@~+-]++|\.(?=\w))++){{2,}}+/?",
            rf"(?<![{_LATIN}/])(?:~|\.{{1,2}})/(?:[^\W{_UNSPACED}]|[@~+-]|\.(?=\w))++",
            rf"(?<![{_LATIN}/])/(?:bin|boot|dev|etc|lib|mnt|opt|proc|sbin|srv|sys|tmp|usr|var)(?![{_LATIN}/])",
            rf"{_FREE}(?<!/)(?=[\w.-]{{0,80}}+[/\w.-]{{0,200}}[A-Za-z])(?:[a-zA-Z\d_.-]{{2,64}}+/){{2,16}}+[a-zA-Z\d_-]{{1,64}}+(?:\.[a-zA-Z\d_-]++)*+/?(?![{_LATIN}/])",
            rf"{_FREE}(?<!/)(?:[a-zA-Z\d_-]{{1,64}}+/){{1,16}}+[a-zA-Z\d_-]{{1,255}}+(?:\.[a-zA-Z\d_-]{{1,64}}+)*?\.(?i:{_EXTENSION}){_END}",
            rf"(?<![{_LATIN}*/-])(?:\*\*/)?+[\w/-]{{0,80}}+\*\.[A-Za-z\d]{{1,8}}{_END}",
            rf"{_START}(?:application|audio|font|image|message|model|multipart|text|video)/(?:[a-z\d]++[.+-][a-z\d.+-]*[a-z\d]|plain|javascript|mpeg|{_EXTENSION}){_END}",
        ),
    ),
    # example.com; not p.es. or m.in.
    (
        SpanKind.ADDRESS,
        re.compile(r"\.[a-z]"),
        rf"{_FREE}(?<!@)(?:[{_SMALL}\d][{_SMALL}\d-]{{0,62}}+\.(?=[{_SMALL}\d])){{1,8}}+(?<=[{_SMALL}\d-]{{2}}\.){_TOP_LEVEL}(?![{_LATIN}@]|\.[{_LATIN}])",
    ),
    # data.tar.gz .gitignore .btn-primary
    (
        SpanKind.PATH,
        re.compile(r"\.[A-Za-z\d]"),
        (
            rf"{_FREE}(?:(?:[^\W{_UNSPACED}]|-){{2,255}}+(?:\.[\w-]{{1,64}}+)*?)\.(?i:{_EXTENSION})(?!\.?[{_LATIN}])",
            rf"{_FREE}[A-Za-z]\.(?![a-z]{_END}){_EXTENSION}(?!\.?[{_LATIN}])",
            rf"(?<![{_LATIN}.])\.(?:[a-z]++(?:[-_][a-z\d]++)++|env|git[a-z]*|[a-z]{{2,}}(?:rc|ignore)|htaccess|{_EXTENSION})(?:\.[a-z]++)*+{_END}(?!\.\w)",
        ),
    ),
    # @name @scope/package #topic owner/name#12; letters of a script without blanks are part of a topic only
    (
        SpanKind.NAME,
        "@ #",
        (
            rf"{_FREE}(?<![@/])[A-Za-z\d][\w.-]{{0,63}}+/[\w.-]{{1,63}}+#\d{{1,9}}+{_END}",
            rf"(?<![{_LATIN}/&@#])(?:@\+?(?=[A-Za-z_])[{_LATIN}]++(?:(?:\.|{_HYPHEN}|@)[{_LATIN}]++)*+(?:/[a-z\d][a-z\d._-]*[a-z\d])?|[@#](?=\d*+[\p{{L}}_])[\p{{L}}\p{{M}}\d_]++(?:(?:\.|{_HYPHEN})[\p{{L}}\d_]++)*+)",
        ),
    ),
    # max_length (not Leser_innen) C++ C# .NET f() t('x') a::b
    (
        SpanKind.IDENTIFIER,
        re.compile(r"_|\+\+|#|\.NET|\([)'\"]|\[\]|::"),
        (
            rf"{_START}[A-Za-z_][{_LATIN}]*+(?:(?:\.|::)[A-Za-z_][{_LATIN}]*+)*+(?:\((?:'[^'()\n]*+'|\"[^\"()\n]*+\")?\)|\[\])",
            rf"{_START}[A-Za-z_][{_LATIN}]*+(?:::[A-Za-z_][{_LATIN}]*+)++(?:<[{_LATIN}:, ]++>)?+",
            rf"{_START}(?!\p{{Lu}}\p{{Ll}}++_\p{{Ll}}++{_END})_*[A-Za-z\d]++(?:_[A-Za-z\d]++)++_*(?:-[A-Z\d]++(?!\p{{Ll}}))*+{_END}",
            rf"(?<![{_LATIN}#+]){_NO_STOP}[A-Z](?:\+\+|\#)(?![{_LATIN}#+])",
            rf"(?<![{_LATIN}.])\.NET(?![{_LATIN}])",
        ),
    ),
    # 3.5×10 1920×1080
    (SpanKind.IDENTIFIER, "× ·", rf"(?<![{_LATIN}.,])\d++(?:[.,]\d++)*+(?:[×·]\d++(?:[.,]\d++)*+)++{_END}"),
    # CO₂ x² 10⁶ Fe³⁺; not km² or m/s², nor a word with a footnote mark
    (
        SpanKind.IDENTIFIER,
        re.compile(f"[{_SMALL_DIGITS}]"),
        rf"(?<![{_LATIN}{_SMALL_DIGITS}/·⋅])(?:[A-Z][a-z]?[²³⁴]?[⁺⁻]|[A-Za-z\d]{{1,30}}+[₀-₉]++[A-Za-z\d{_SMALL_DIGITS}⁺⁻₊₋]*+"
        rf"|(?:(?!m[²³])[A-Za-z]|\d++)⁻?[⁰¹²³⁴-⁹]++){_END}",
    ),
    # AB-1234 X200 mp3 B2B 4K 12AB34 INV/2024/001 4711-XY v1.2 python3.11 DE89 3704 0044 0532 0130 00 2026-05-03T10:00Z
    # 0xFF ubuntu-24.04 HEAD~1; not 2nd, 10km, 10h30, m2, 1990s
    (
        SpanKind.IDENTIFIER,
        re.compile(r"\d(?:(?=-?[A-Za-z])|(?<=[A-Za-z]\d)|(?<=[A-Za-z][-/~^]\d))"),
        rf"(?<![{_LATIN}])(?=\d|[A-Za-z]{{1,40}}+[-/~^]?\d)(?:v\d++(?:\.\d++)*+(?:{_RELEASE}){{0,2}}+{_END}"
        rf"|{_NO_HYPHEN}\d{{4}}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d++)?)?(?:Z|[-+]\d\d:?\d\d)?+{_END}|0[xX][\da-fA-F]++{_END}|\d++(?:\.\d++)?[eE][-+]?\d++(?![{_LATIN}-])"
        rf"|[A-Z]{{2}}\d{{2}}(?: ?[A-Z\d]{{4}}){{2,7}}+(?: ?[A-Z\d]{{1,3}})?{_END}|[A-Za-z]++[~^]\d++{_END}"
        rf"|(?<!,|(?<![A-Z\d])/){_NO_STOP}{_NO_HYPHEN}(?:(?:[A-Z]{{1,8}}(?:[-/]\d[A-Z\d]*+)(?:[-/][A-Z\d]++(?!\p{{Ll}}))*+|\d++(?:-\d++)*+-[A-Z]{{1,8}}\d*+(?:-\d++)*+){_END}"
        rf"|(?!(?:[kcmd]?m|ft|in|yd)[23]{_END})[A-Za-z]++\d[A-Za-z\d]*+(?:\.\d++)*+(?:(?:[-‐‑]|/(?=\d{{3}}))[A-Z\d]++(?!\p{{Ll}}))*+{_END}"
        rf"|(?![0-2]?\d[a-wyz][0-5]\d{_END}|\d++x\d++{_END})\d++[A-Za-z]++\d[A-Za-z\d]*+(?:-(?:[A-Z\d]++(?!\p{{Ll}})|[A-Za-z]*\d[A-Za-z\d]*))*+{_END}|\d{{1,4}}+[BDEGHKPQRSTXYZ]{_END_OR_COMPOUND}"
        rf"|[a-z]{{2,}}+-\d++(?:\.\d++)++{_END}))",
    ),
    # pt-BR zh-Hant-TW
    (
        SpanKind.IDENTIFIER,
        re.compile(r"-(?<=[a-z]-)[A-Z](?:[A-Z]|[a-z]{3}-)"),
        rf"{_FREE}(?<!/)[a-z]{{2}}(?:-[A-Z][a-z]{{3}})?-[A-Z]{{2}}{_END_OR_COMPOUND}",
    ),
    # 1.2.3 ^2.0.0-rc.1 978-3-16-148410-0: versions and codes of digits alone; not dates, times or groups of thousands
    (
        SpanKind.IDENTIFIER,
        re.compile(r"\.\d{1,3}\.\d|-\d{1,9}-\d{1,9}-\d|\.\d++[-+]"),
        (
            rf"{_VERSION}\d++(?:\.\d++){{2,3}}+(?:{_RELEASE}){{1,2}}+{_END}",
            rf"{_VERSION}\d{{1,3}}\.(?:\d{{1,3}}\.\d|0\.\d{{2}})(?![{_LATIN}]|[.,]\d)",
            rf"{_FREE}(?<![,/])\d{{1,9}}(?:-\d{{1,9}}){{3,}}+{_END_OR_COMPOUND}",
        ),
    ),
    # :) ;-P =D
    (
        SpanKind.SYMBOL,
        re.compile("[:;=]"),
        rf"{_OPENED}(?:[:;]['’]?-?[()DPpOoXx/|*]|=[()D])(?![^\s.,;:!?)\]\"'“”»؟،—–…\u200b{_UNSPACED}])",
    ),
    (
        SpanKind.SYMBOL,
        re.compile("[\u20e3\u218a-\U0010ffff]"),
        r"(?:\p{Regional_Indicator}{2}|[\d#*]\ufe0f?\u20e3"
        r"|(?![\u2190-\u21ff\u3030\u303d\u3297\u3299])(?=[^\x00-\u2189])\p{Extended_Pictographic}"
        r"(?:[\ufe0e\ufe0f\p{Emoji_Modifier}]|\u200d\p{Extended_Pictographic}|[\U000e0020-\U000e007f])*+)++",
    ),
)
# A text without a match has none of the spans above. What no match begins with is skipped in a tenth of the time.
_ANY = re.compile(
    rf"[%{{<$@#&\\/_`\[\d~^+*:=;.!(w{_SMALL_DIGITS}\u218a-\U0010ffff-]"
    rf"(?:(?<=[^:=;.!(w-])|(?<=[:=;])(?=\S)|(?<=\.)(?=[A-Za-z])|(?<=!)(?=[!\w])|(?<=\()(?=[)?'\"])"
    rf"|(?<=-)(?=-|[A-Z])|(?<=[\s(\[\"'“„«]-)(?=[A-Za-z]\b)|(?<=w)(?=ww\.))"
)
_NEEDED = [needed.split() if isinstance(needed, str) else needed for _, needed, _ in _PATTERNS]
_SIGN_BEFORE = regex.compile(r"\p{Sc}\Z")
_SIGN_BEHIND = regex.compile(rf"(?:\p{{Sc}}|[%‰])(?![\w%{{])|°[A-Za-z]?{_END}")
# \X alone goes back from each letter of a flag to the first of a row of flags.
_GRAPHEME_OR_WORD = regex.compile(r"[\w\p{M}]+|\p{Regional_Indicator}{1,2}+[\p{M}\u200d]*+|\X")
_ABUGIDA = regex.compile(r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
UNSPACED = regex.compile(f"[{_UNSPACED}]")
_RUNS = regex.compile(rf"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_GRAPHEME = regex.compile(r"\X")


@cache
def _compiled(index: int) -> "regex.Pattern[str]":
    """Return a pattern, compiled at its first use: all of them together take 40 ms."""
    alternatives = _PATTERNS[index][2]
    return regex.compile(alternatives if isinstance(alternatives, str) else "|".join(alternatives))


def compile_patterns() -> None:
    """Compile all patterns: processes that are forked afterwards share them."""
    for index in range(len(_PATTERNS)):
        _compiled(index)


def find_spans(text: str, unknown: UnknownCharacters | None = None) -> list[Span]:
    """Return the spans of a text in their order, without overlaps; those with `unknown` characters too, if given."""
    found = _with_signs(text, _by_form(text)) if _ANY.search(text) else []
    if unknown is None or unknown.all_known(text):
        return found
    # No model reads an unknown character, so nothing with one may be part of a model's input.
    unread = [
        Span(each.start, each.end, SpanKind.UNKNOWN)
        if each.kind in READABLE - {SpanKind.SYMBOL} and any(map(unknown.is_lost, text[each.start : each.end]))
        else each
        for each in found
    ]
    return _without_overlaps(unread, list(_unknown(text, unknown)))


def _by_form(text: str) -> list[Span]:
    found: list[Span] = []
    for index, (kind, _, _) in enumerate(_PATTERNS):
        needed = _NEEDED[index]
        if not any(each in text for each in needed) if isinstance(needed, list) else needed.search(text) is None:
            continue
        checkpoint()
        others = [
            Span(match.start(), match.end(), kind)
            for match in _compiled(index).finditer(text)
            if 0 < match.end() - match.start() <= _MAX_CHARACTERS
        ]
        found = _without_overlaps(found, others) if found else others
    return found


def _with_signs(text: str, found: Sequence[Span]) -> list[Span]:
    """Return the spans, placeholders with the signs of a quantity that touch them: `%s°C`, `{rate}%`, `$%.2f`."""
    widened: list[Span] = []
    position = 0
    for index, span in enumerate(found):
        start, end = span.start, span.end
        if span.kind is SpanKind.PLACEHOLDER:
            start -= _SIGN_BEFORE.search(text, max(start - 1, position), start) is not None
            behind = _SIGN_BEHIND.match(text, end, found[index + 1].start if index + 1 < len(found) else len(text))
            end = end if behind is None else behind.end()
        widened.append(Span(start, end, span.kind))
        position = end
    return widened


def _unknown(text: str, unknown: UnknownCharacters) -> Iterator[Span]:
    """Yield words and symbols with characters that the model would lose."""
    for match in _GRAPHEME_OR_WORD.finditer(text):
        checkpoint()
        if not any(map(unknown.is_lost, match.group())):
            continue
        if not any(map(str.isalnum, match.group())):
            yield Span(*match.span(), SpanKind.SYMBOL)
            continue
        # A sentence of a script without blanks is one word here.
        for part in _RUNS.finditer(text, *match.span()):
            yield from _unknown_in_run(text, part.span(), unknown)


def _unknown_in_run(text: str, run: tuple[int, int], unknown: UnknownCharacters) -> Iterator[Span]:
    """Yield a word, or what of a text without blanks the model would lose."""
    lost = list(map(unknown.is_lost, text[slice(*run)]))
    if not any(lost):
        return
    if UNSPACED.match(text[run[0]]) is None or 2 * sum(lost) >= len(lost):
        yield Span(*run, SpanKind.UNKNOWN)
    elif _ABUGIDA.match(text[run[0]]) is None:  # a letter that is missing in a sentence of letters makes no span of it
        for match in _GRAPHEME.finditer(text, *run):
            if any(map(unknown.is_lost, match.group())):
                yield Span(*match.span(), SpanKind.UNKNOWN)


def _without_overlaps(found: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """Return spans with those of the others that do not overlap them; both are in their order."""
    merged: list[Span] = []
    index = 0
    for other in others:
        while index < len(found) and found[index].end <= other.start:
            merged.append(found[index])
            index += 1
        if index == len(found) or other.end <= found[index].start:
            merged.append(other)
    return [*merged, *found[index:]]
