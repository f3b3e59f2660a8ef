"""Patterns of items, some alternatives a kind.

Of matches at one position the first alternative counts. Hostile texts must not take long: repetitions with an uncertain
end are possessive or bounded, and no alternative reads far from many positions.
"""

from collections.abc import Mapping

import regex

from server.text.items.clock_times import CLOCK_TIME
from server.text.items.kinds import ItemKind
from server.text.items.written_dates import WRITTEN_DATE

NUMERO_SIGN = r"(?<!\w)(?:[Nn][ro]\.|№|[Nn]°|[Nn]\.\s?º)\s?"
_GAP = "[ \u00a0\u202f]?"

# Not behind a letter, a digit or a separator of digits. `1 250` is one number, `2014 350` is two.
NUMBER = (
    r"(?:(?<![\w.,)\]'’-])[-+±−])?(?<![\p{L}\d_]|\d[.,'’\u00a0\u202f])"
    r"(?:\d{1,3}+(?:[ \u00a0\u202f]\d{3})++(?:[.,]\d++)?+(?!\d)|\d++(?:[.,'’\u00a0\u202f]\d++)*+)"
)
MAGNITUDES = (
    r"(?:[Mm]illi(?:on(?:en|s|i|es)?|ón|ões|ão|oner)|[Mm]illones|[Mm]ilh(?:ão|ões)|[Bb]illi?on(?:en|s|es)?|[Bb]illón|"
    r"[Tt]rillion(?:en|s)?|[Mm]illiard(?:en?|s|i|o)?|[Mm]iliard(?:[aiy]|ów|o)?|[Mm]ili(?:on(?:[ióyea]|"
    r"ów)?)|[Tt]housand|"
    r"[Tt]ausend|mil(?: millones)?|mille|mila|mln|mld|mrd|bn|tn|(?:Mio|Mrd|Bio)\.?+)(?!\w)"
)
UNITS = (
    r"km/h|m/s|mph|[kcmµμn]?m[²³23]?|in²|ft|yd|lbs?|oz|[kmµμ]?g|t|[mcdµμ]?[lL]|[kKMGTP]i?[Bb](?:it|yte)?s?(?:/s|"
    r"ps)?|[Mkm]?bps|"
    r"[kMG]?Hz|[kMGm]?Wh?|[kmµμ]?V|[mk]?Ah?|[kM]?J|kcal|[kMh]?Pa|dB|°\s?[CF]|°|px|pt|dpi|ppm|[mµμn]?s"
)
_AMOUNT = r"(?:\d{1,3}+(?:[.,]\d{3})++(?!\d)|\d{1,6}+)(?:[.,]\d{1,2}+(?!\d))?+"
CURRENCY_CODES = r"(?:USD|EUR|GBP|CHF|JPY|CNY|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|RON|RUB|TRY|INR|BRL|MXN|ZAR|KRW|ILS)"
CURRENCY_SIGNS = r"(?:(?:US|A|AU|C|CA|NZ|HK|S)?\$|[€£¥₹₽₩₺₴])"
CURRENCY_WORDS = (
    r"(?:(?:US-)?[Dd]ollars?|[Ee]uros?|[Pp]fund|[Pp]ounds?|[Yy]en|Franken|[Ff]rancs?|[Dd]ólar(?:es)?|[Dd]ollari)"
)
_CURRENCY = rf"(?:{CURRENCY_SIGNS}|(?<!\w){CURRENCY_CODES})"

# Brackets belong to an address in pairs, and punctuation inside it.
_IN_BRACKETS = r"[^\s<>\"“”«»(){}]*+"
_ADDRESS = (
    rf"(?:(?:[.,;:!?\]}}'’…]|\((?!{_IN_BRACKETS}\)))*+"
    rf"(?:\({_IN_BRACKETS}\)|\{{{_IN_BRACKETS}\}}|[^\s<>\"“”«»().,;:!?\]}}'’…]))++"
)
_TOP_LEVEL = (
    r"(?:com|org|net|edu|gov|io|dev|app|info|biz|eu|de|at|ch|fr|es|it|nl|pl|pt|uk|co|us|ca|ru|"
    r"jp|cn|br|in|be|se|dk|no|fi)"
)
_EXTENSIONS = (
    r"pdf|docx?|xlsx?|pptx?|od[tspg]|rtf|txt|csv|tsv|json|xml|html?|css|ya?ml|py|js|jsx|tsx?|c|cc|cpp|h|"
    r"hpp|java|kt|rs|go|"
    r"rb|php|sql|sh|bat|ps1|exe|msi|deb|rpm|dmg|apk|jar|zip|gz|tgz|bz2|xz|zst|7z|rar|tar|iso|png|jpe?g|"
    r"gif|svg|webp|bmp|"
    r"tiff?|heic|ico|mp[34]|m4a|wav|flac|ogg|avi|mkv|mov|webm|log|ini|cfg|conf|toml|md|po|srt|vtt|epub|"
    r"mobi|eml|bak|db|org"
)
_FILE_END = rf"\.(?i:{_EXTENSIONS})(?!\.?\w)"
FILE_ENDINGS = rf"\.(?:{_EXTENSIONS}|{_TOP_LEVEL})\b"
# Words that stand inside the name of a file between capitalised ones, and those that are no part of it.
_LINKS = (
    r"(?:an|auf|am|im|in|the|der|die|das|dem|den|des|of|to|for|für|fuer|und|and|et|de|du|la|le|del|von|vom|"
    r"zu|zum|zur|y)"
)
_NO_FILE_NAMES = (
    r"(?:[Dd]ateien|[Dd]atei|[Ff]iles?|[Dd]okumente?|[Dd]ocuments?|[Ff]oto|[Bb]ild|[Tt]he|[Dd](?:ie|er|as|"
    r"en|em)|[Ll][ae]|"
    r"[Ee]l|[Ii]l|[Oo]pen|[Ss]ee|[Rr]ead|[Ss]end|[Uu]se|[Ss]ave|[Pp]lease|[Bb]itte|[Ii]n|[Aa]n?|[Mm](?:y|"
    r"eine?)|[Yy]our|"
    r"[Ii]hre?|[Tt]his|[Tt]hat|[Öö]ffnen?|[Ss]iehe|[Ss]peichern?|[Ff]ichier|[Aa]rchivo|[Ii]|[Ii]ch|[Ww]e|[Tt]hey|[Hh]e)"
)
# C#, C++, .NET, A/B, TCP/IP, R&D
_WORD_PAIRS = (
    r"(?i:and|or|und|oder|ou|he|she|his|her|him|it|er|sie|es|ihr|il|elle|yes|no|ja|nein|on|off|ein|aus|w|c|km|mr|mrs)"
)
NAME_WITH_SIGNS = (
    r"(?<![\w#+.])[A-Z](?:\+\+|\#)(?![\w#+])|(?<![\w.])\.NET(?!\w)"
    rf"|(?<![\w/&'’-])(?!{_WORD_PAIRS}[/&])[A-Z]{{1,5}}\d?(?:[/&][A-Z]{{1,5}}\d?){{1,3}}+(?![\w/&])"
)
# 10^6, n^2, Xy7!k#2
_WITH_SIGNS_INSIDE = (
    r"(?<![\w^])\w++\^[-−]?\w++"
    r"|(?<![\w!$*~+=#@&%./\\-])(?=\w{1,40}+[!*~#]\w)(?=[\w!$*~+=#@-]{0,40}?\d)"
    r"(?=[\w!$*~+=#@-]{0,40}?\p{L})[\w!$*~+=#@-]{1,80}(?<=\w)"
)
# x², CO₂, 10⁻³: tokenizers read them as x2, CO2, 10-3.
SMALL_DIGITS = "⁰¹²³⁴-⁹₀-₉"
_WITH_SMALL_DIGITS = rf"(?<![\w{SMALL_DIGITS}])[\p{{L}}\d]{{1,30}}+[⁺⁻₊₋]?[{SMALL_DIGITS}]++[\w{SMALL_DIGITS}]*+"
# Ctrl+C, Strg + Alt + Entf
KEY_NAMES = {"Ctrl": "Strg", "Shift": "Umschalt", "Del": "Entf", "Delete": "Entf", "Home": "Pos1"}
_KEY = (
    rf"(?:{'|'.join([*KEY_NAMES, *KEY_NAMES.values()])}|Control|AltGr|Alt|Cmd|Command|Option|Win|Windows|Super|Meta|"
    r"Fn|⌘|Enter|Return|Tab|Esc|Escape|Space|End|Ende|Ins|Insert|Einfg|F\d{1,2}|[A-Z\d])"
)
KEYS = rf"(?<![\w+])(?!(?:F\d{{1,2}}|[A-Z\d])[ +]){_KEY}(?: ?\+ ?{_KEY}(?!\w)){{1,4}}+(?![\w+])"
# Before a number with a point: it counts versions, chapters or figures. It is no sum, and no quantity.
_NUMBERED = (
    rf"(?!{CURRENCY_CODES} )(?:[A-Z][A-Z\d]{{1,7}}|\p{{L}}{{0,20}}\p{{Ll}}\p{{Lu}}\p{{L}}{{0,20}}|"
    r"[Vv]ersion(?:en|s)?|[Vv]ersión|[Vv]ersione|[Rr]elease|[Uu]pdate|[Ff]irmware|Python|Java|Perl|Ruby|Rust|Kotlin|"
    r"Swift|Go|Node|Angular|React|Django|Rails|Docker|Kubernetes|Linux|Ubuntu|Debian|Fedora|Android|Windows|Bluetooth|"
    r"Firefox|Chrome|Safari|Edge|Office|Web|Industrie|Industry|[Ss]ections?|[Cc]hapters?|[Ff]igures?|Figs?\.|[Tt]ables?|[Aa]ppendix|"
    r"[Cc]lauses?|[Pp]aragraphs?|[Ss]teps?|[Ee]quations?|Abschnitte?n?|Kapiteln?|Abbildung(?:en)?|Abb\.|Tabellen?|Tab\.|"
    r"Ziffern?|Absatz|Absätze|Anhang|Schritte?n?|Gleichung(?:en)?|[Cc]hapitres?|[Tt]ableaux?|[Cc]apítulos?|[Ss]ección)"
)
# Brackets around whole sentences; those inside one seldom get lost, and their words are hard to find again.
_BEFORE_SENTENCE = r"(?:^[ \t]*|[.!?…][\"”’]?\s{1,3})"
_BEHIND_SENTENCE = r"(?:\s*$|(?<=[.!?…][\"”’]?[)\]])\s)"
BRACKETS = (
    rf"(?<={_BEFORE_SENTENCE})[(\[](?=[^()\[\]\n]{{1,300}}[)\]]{_BEHIND_SENTENCE})"
    rf"|(?<={_BEFORE_SENTENCE}[(\[][^()\[\]\n]{{1,300}})[)\]](?={_BEHIND_SENTENCE})"
)
REMARKS = r"\[(?:sic!?|…|\.\.\.)\]|\((?:sic!?|!|\?)\)"
# Single quotation marks in pairs: an apostrophe has letters on both sides, or begins a short form.
_NO_APOSTROPHE = r"(?!(?i:tis|twas|em|n|cause|til|till|bout|round|s|t|ne|nen|nem|ner|rein|raus|runter|rauf)\b)"
_IN_QUOTES = r"[\p{L}\d](?:[^'\n]|(?<=\p{L})'(?=\p{L})){0,150}"
_IN_CURLY_QUOTES = r"[\p{L}\d](?:[^‘’‚‛\n]|(?<=\p{L})[‘’](?=\p{L})){0,150}"
_END_OF_QUOTE = r"(?<=[\p{L}\d.,!?…])"
SINGLE_QUOTES = (
    rf"(?<![\w'])'{_NO_APOSTROPHE}(?={_IN_QUOTES}{_END_OF_QUOTE}'(?!\w))"
    rf"|(?<=(?<![\w'])'{_NO_APOSTROPHE}{_IN_QUOTES}){_END_OF_QUOTE}'(?!\w)"
    rf"|(?<![\w’])[‘‚](?={_IN_CURLY_QUOTES}{_END_OF_QUOTE}[’‘](?!\w))"
    rf"|(?<=(?<![\w’])[‘‚]{_IN_CURLY_QUOTES}){_END_OF_QUOTE}[’‘](?!\w)|[‹›]"
)
_HYPHEN = "[-\u2010\u2011]"

# With a kind, the patterns that it has; docs/preserved-text.md lists the same kinds for users.
PATTERNS: tuple[tuple[ItemKind, str], ...] = (
    (ItemKind.URL, rf"(?:(?:https?|ftp|file|wss?|git|ssh|sftp)://|www\.|mailto:|tel:(?=[+\d])){_ADDRESS}"),
    (ItemKind.EMAIL, r"(?<![\w.+-])[\w.+-]{1,64}+@[\w-]{1,63}+(?:\.[\w-]{1,63}+)++"),
    # {{name}} ${NAME} %{name} #{name} {name} {0} {n, plural, one {# file} other {# files}} @:{key}
    (
        ItemKind.PLACEHOLDER,
        r"\{\{[^{}\n]*+\}\}|(?:[$%#@]|@(?:\.[a-z]+)?:)?\{(?:[^{}\n]++|\{(?:[^{}\n]++|\{[^{}\n]*+\})*+\})*+\}",
    ),
    (ItemKind.PLACEHOLDER, r"(?<![\d%])%[A-Za-z][A-Za-z0-9_]++%(?![\w%])"),
    (ItemKind.PLACEHOLDER, r"%\([\w.]++\)[-+0#]*+\d*+(?:\.\d++)?[a-zA-Z]"),
    (
        ItemKind.PLACEHOLDER,
        r"(?<!\d)%(?:\d++\$)?+[-+0#]*+(?:\d++|\*)?+(?:\.\d++)?+(?:hh|h|ll|l|q|L|z|t|"
        r"j)?[diouxXeEfFgGcCsSapn@](?![a-zA-Z]{2})",
    ),
    (ItemKind.PLACEHOLDER, r"(?<![\d\w])%L?\d{1,2}(?![\w%])"),
    (ItemKind.PLACEHOLDER, r"%[A-Z][A-Z0-9_]++%|%%"),
    # $NAME $(date) @:key @.lower:key :name
    (ItemKind.PLACEHOLDER, r"\$\([^()\n]{1,200}+\)|\$[A-Za-z_]\w*"),
    (ItemKind.PLACEHOLDER, r"(?<![\w@])@(?:\.[a-z]++)?:[\w-]++(?:\.[\w-]++)*+"),
    (ItemKind.PLACEHOLDER, r"(?<![\w:/])::?(?:[a-z_]\w++|[A-Z]\w*?[a-z]\w++|[A-Z][A-Z0-9_]{2,})(?![\w:]|/)"),
    (ItemKind.PLACEHOLDER, r"\[\[[^\[\]\n]*+\]\]|__[A-Za-z0-9_]+?__"),
    # example.com/help
    (
        ItemKind.URL,
        rf""
        rf"(?<![\w@.-])(?:[A-Za-z0-9](?:[A-Za-z0-9-]{{0,62}}+)\.){{1,8}}+(?<=\.){_TOP_LEVEL}(?:(?::\d{{1,5}}+)?/(?:{_ADDRESS})?)(?!\w)"
        rf"|(?<![\w@.-])(?:[a-z0-9][a-z0-9-]{{0,62}}+\.){{1,8}}+(?<=\.)(?:{_TOP_LEVEL})\b(?!\.?\w)",
    ),
    # \\server\share c:\temp ~/a/b ./a/b /usr/bin src/main/java
    (
        ItemKind.PATH,
        r"(?<![\w\\])\\\\[\w.$-]++(?:\\[\w.$@~+-]++)++\\?|"
        # A name of a folder may have blanks: C:\Program Files (x86)\app
        r"\b[A-Za-z]:\\(?:[\w$@~+.-]++(?: [\w().-]++){1,3}+\\|[\w$@~+-]++(?:\.[\w$@~+-]++)*+\\?)*+",
    ),
    (
        ItemKind.PATH,
        r"(?<![\w/])(?:~|\.{1,2})?(?:/(?:[\w@~+-]++|\.(?=\w))++){2,}+/?|(?<![\w/])~/[\w@~+-][\w.@~+-]*(?<!\.)",
    ),
    (
        ItemKind.PATH,
        r"(?<![\w/.-])(?!(?i:(?:s?he|it|they|his|hers?|him|them|er|sie|es|ihr|ihm|ils?|elles?|and|or|und|oder|"
        r"ou|ja|nein|yes|"
        r"no|not)/))(?=[\w.-]*[^\W\d])[\w.-]*[\w-](?:/[\w.-]*[\w-]){2,}+/?(?![\w/])",
    ),
    (ItemKind.PATH, rf"(?<![\w/.-])(?:[\w-]{{1,64}}+/){{1,16}}+[\w-]{{1,255}}+(?:\.[\w-]{{1,64}}+)*?{_FILE_END}"),
    # Brief an Oma.docx
    (
        ItemKind.FILE,
        rf"(?<![\w.-])(?!{_NO_FILE_NAMES} )\p{{Lu}}[\w-]{{0,64}}+(?: (?:{_LINKS}|\p{{Lu}}[\w-]{{0,64}}+|"
        rf"\d{{1,8}}+)){{1,5}}?"
        rf"(?<! {_LINKS}){_FILE_END}",
    ),
    (ItemKind.FILE, rf"(?<![\w.-])(?!\p{{Lu}}\.\p{{Lu}}(?!\w))[\w-]{{1,255}}+(?:\.[\w-]{{1,64}}+)*?{_FILE_END}"),
    (ItemKind.IDENTIFIER, r"(?<![\w-])--[a-z][\w-]*"),
    (ItemKind.IDENTIFIER, r"\b\w[^\W_]*+_\w++"),
    (ItemKind.IDENTIFIER, NAME_WITH_SIGNS),
    (ItemKind.IDENTIFIER, r"(?<![\w-])[A-Z]{2,5}-[A-Z](?![\w-])"),  # USB-C
    (ItemKind.IDENTIFIER, KEYS),
    (ItemKind.IDENTIFIER, _WITH_SIGNS_INSIDE),
    (ItemKind.IDENTIFIER, _WITH_SMALL_DIGITS),
    (ItemKind.DATE, WRITTEN_DATE),
    (
        ItemKind.DATE,
        r"(?<![\w.-])\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d++)?)?(?:Z|[+-]\d{2}:?\d{2})?)?(?![\w-])",
    ),
    (ItemKind.DATE, r"(?<![\w./-])\d{1,2}(?P<sep>[./-])\d{1,2}(?P=sep)(?:\d{4}|\d{2})(?![\w/-]|\.\d)"),
    (ItemKind.DATE, r"(?<![\w./-])\d{4}[/.]\d{1,2}[/.]\d{1,2}(?![\w/-]|\.\d)"),
    (ItemKind.TIME, CLOCK_TIME),
    (ItemKind.ACCOUNT, r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}+(?: ?[A-Z0-9]{1,3})?(?!\w)"),
    (ItemKind.ACCOUNT, r"(?<![\w.,-])\d{4}(?:([ -])\d{4}){2,3}+(?![\w-]|[.,]\d)"),
    # **** **** **** 1234
    (ItemKind.ACCOUNT, r"(?<![\w*•])(?:(?:\*{4}|•{4}|[xX]{4})[ -]?){1,4}+\d{2,4}(?!\w)"),
    (
        ItemKind.PHONE,
        r"(?<![\w.,/-])(?:\+|00)[1-9](?:[ \u00a0()/.-]{0,2}\d){6,14}+(?![\w-])"
        r"|(?<![\w.,/-])\(\d{2,6}\)[ /-]?\d(?:[ -]?\d){4,10}+(?![\w-])"
        r"|(?<![\w.,/-])0\d{1,5}(?:[ ]?[/-][ ]?|[ ])\d(?:[ -]?\d){3,11}+(?![\w-]|[.,]\d)"
        r"|(?<![\w.,/-])(?:\d{3}[-. ])?\d{3}[-.]\d{4}(?![\w-]|[.,]\d)",
    ),
    # $5-10 $5–$10
    (
        ItemKind.RANGE,
        rf"(?<![\w.,/:-])[$€£¥]{_AMOUNT}[-–][$€£¥]?{_AMOUNT}(?!{_GAP}{MAGNITUDES}|[\w/:–-]|[.,]\d)"
        rf"|(?<![\p{{L}}\d_.,/:$€£¥–-]){_AMOUNT}[-–]{_AMOUNT}{_GAP}[€£$¥](?!\w)",
    ),
    # 3-5 10–12 km 16:9 1/2 ½
    (
        ItemKind.RANGE,
        rf"(?<![\p{{L}}\d_.,/:$€£-])\d{{1,4}}+(?:[.,]\d{{1,2}})?(?:[-–]|:(?=\d{{1,2}}(?!\d))|/)\d{{1,4}}+(?:[.,]\d{{1,2}})?"
        rf"(?![\w/:–-]|[.,]\d)(?:{_GAP}(?:{UNITS}|[%‰€£$])(?!\w))?|(?<!\d)(?:\d{{1,4}}+ ?)?[¼½¾⅓⅔⅛⅜⅝⅞]",
    ),
    (
        ItemKind.VERSION,
        rf"(?<=(?<![\w.]){_NUMBERED} )\d{{1,3}}\.\d{{1,2}}"
        rf"(?![\w.,]*\d|\w|{_GAP}(?:{UNITS}|{MAGNITUDES}|[%‰€£$])(?!\w))",
    ),
    (ItemKind.VERSION, r"\bv\d+(?:\.\d+)*(?:[-+]\w[\w.]*(?<!\.)){0,2}+(?!\w)"),
    (
        ItemKind.VERSION,
        r"(?<![\w.,])(?!\d{1,3}(?:\.\d{3})++(?!\.?\d))\d+(?:\.\d+){2,}(?:[-+]\w[\w.]*(?<!\.)){0,2}+(?![\w,]\d)",
    ),
    (
        ItemKind.MONEY,
        rf"{_CURRENCY}{_GAP}{NUMBER}(?:{_GAP}{MAGNITUDES}|[kKMmB](?!\w))?"
        rf"|{NUMBER}(?:[.,][-–]{{1,2}}|{_GAP}{MAGNITUDES})?{_GAP}(?:{CURRENCY_SIGNS}|{CURRENCY_CODES}|{CURRENCY_WORDS})(?![\w%])",
    ),
    (ItemKind.PERCENTAGE, rf"{NUMBER}{_GAP}[%‰](?!\w)"),
    # 1A of Meteor-1A, which is no current; the name before it may be translated
    (ItemKind.CODE, r"(?<=\p{Ll}-)\d{1,6}+[A-Z]{1,3}+(?!\w)"),
    (ItemKind.QUANTITY, rf"(?!\d{{4}}s){NUMBER}{_GAP}(?:{UNITS})(?![\w%/])"),
    # 1A X200 B2B AB-1234 INV/2024/001 4711-XY -1B, and not 2nd, 1990s, 80er
    (
        ItemKind.CODE,
        rf"(?<![\w.,/-])(?:[A-Z]{{1,8}}(?:[-/]\d[A-Za-z\d]*+)(?:[-/][A-Za-z\d]++)*+|"
        rf"[A-Za-z]++\d[A-Za-z\d]*+(?:{_HYPHEN}[A-Z\d]++)*+"
        r"|\d++(?:-\d++)*+-[A-Z]{1,8}\d*+(?![a-z])|\d++(?:[A-Z][A-Z\d]*+(?![a-z])|[a-z]++\d[A-Za-z\d]*+|"
        r"[abfk](?!\w)))(?![\w])",
    ),
    (ItemKind.CODE, r"(?<![\w.,/-])\d++(?:[-/]\d++){2,}+(?![\w/-]|[.,]\d)"),
    (ItemKind.CODE, r"(?<![\w.,)\]'’/-])[-−]\d{1,6}+[A-Z]{1,3}+(?!\w)"),
    # 802.11ac
    (ItemKind.CODE, r"(?<![\w.,])\d++\.\d++(?!st|nd|rd|th|er|x)[a-z]{1,2}(?!\w)"),
    # No. 5
    (ItemKind.NUMBER, rf"{NUMERO_SIGN}\d++(?![\w/-]|[.,:]\d)"),
    # the 1990s
    (ItemKind.NUMBER, r"(?<![\w.,/:-])(?:1\d|20)\d0(?:s|er)(?!\w)"),
    # 6.02e23 1.5×10^-3
    (
        ItemKind.NUMBER,
        rf"{NUMBER}(?:[eE][-+]?\d{{1,3}}|{_GAP}[×x·*]{_GAP}10(?:\^?[-+−]?\d{{1,3}}|[⁻⁺]?[⁰¹²³⁴-⁹]+))(?!\w)",
    ),
    (ItemKind.NUMBER, rf"{NUMBER}(?:{_GAP}{MAGNITUDES}|(?:st|nd|rd|th|er|re|e|è|ème|º|ª|\.º|\.ª)(?!\w))?"),
    # Henry VIII, Kapitel IV
    (ItemKind.NUMERAL, r"(?<=\p{Lu}\p{Ll}+ )(?=[IVXL]{2,6}(?!\w))(?:XL|L?X{0,3})(?:IX|IV|V?I{0,3})(?:\.(?= \p{Ll}))?"),
    (ItemKind.NAME, r"(?<![\w/&])@\w+(?:[.-]\w+)*"),
    (ItemKind.TAG, r"(?<![\w/&])#\w+(?:-\w+)*"),
    # Signs between words, and remarks of an editor.
    (ItemKind.SIGN, REMARKS),
    (
        ItemKind.SIGN,
        r"[“”„‟«»]|(?<![\d\w])\"|\"(?!\w)|(?<=\w)\"|(?<!\S)(?:--|[–—-])(?!\S)|(?<!\d[.,])[–—](?!\d)|…|(?<!\.)\.\.\.(?!\.)",
    ),
    (ItemKind.SIGN, BRACKETS),
    (ItemKind.SIGN, SINGLE_QUOTES),
    (ItemKind.SIGN, r"[€£¥§©®™×÷±≤≥≠≈→←⇒↔∞√∑°₹₽]|(?<!\S)[<>=](?!\S)|~(?=\d)|(?<!\w)\$(?!\w)"),
)
NUMBERS = regex.compile(NUMBER)
# A text without a match of this pattern has no item of these kinds. A search takes a tenth of theirs.
NEEDED: Mapping[str, frozenset[ItemKind]] = {
    r"\d|(?i:half past|quarter (?:past|to)|\bhalb|viertel (?:nach|vor)) ": frozenset(
        (
            *(ItemKind.DATE, ItemKind.TIME, ItemKind.ACCOUNT, ItemKind.PHONE, ItemKind.VERSION, ItemKind.MONEY),
            *(ItemKind.PERCENTAGE, ItemKind.QUANTITY, ItemKind.CODE, ItemKind.NUMBER),
        )
    ),
    r"\.\w|://|www\.|mailto:|tel:": frozenset((ItemKind.URL, ItemKind.FILE)),
    r"[%$@:{\[_]": frozenset((ItemKind.PLACEHOLDER,)),
    r"[/\\]": frozenset((ItemKind.PATH,)),
    rf"--|[_#+&/^{SMALL_DIGITS}]|\.NET|\w[!*~]\w|[A-Z]-[A-Z]": frozenset((ItemKind.IDENTIFIER,)),
}
