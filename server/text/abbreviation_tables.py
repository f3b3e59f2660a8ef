"""Abbreviations and their forms in full, which models read in their place."""

from collections.abc import Mapping

from server.text.items.written_dates import month_names

_Table = Mapping[str, Mapping[str, str]]
_ENGLISH_MONTHS = {
    **{f"{month[:3]}.": month for month in month_names("en") if month != "May"},
    "Sept.": "September",
}
_GERMAN_MONTHS = {
    **{f"{month[:3]}.": month for month in month_names("de") if month not in ("März", "Mai")},
    "Sept.": "September",
}

# By source language, or by source and target language where models copy what the target language writes.
# docs/decisions/text.md has the measurements, and abbreviations that models read best as they are.
IN_FULL: _Table = {
    "de": {
        "Abt.": "Abteilung",
        "allg.": "allgemeine",
        "bzgl.": "bezüglich",
        "bzw.": "oder",
        "durchschn.": "durchschnittlich",
        "eigtl.": "eigentlich",
        "einschl.": "einschließlich",
        "entspr.": "entsprechende",
        "evtl.": "eventuell",
        "ggf.": "gegebenenfalls",
        "i. d. R.": "in der Regel",
        "i.d.R.": "in der Regel",
        "inkl.": "einschließlich",
        "insb.": "insbesondere",
        "sog.": "sogenannte",
        "tgl.": "täglich",
        "u. U.": "unter Umständen",
        "u.U.": "unter Umständen",
        "urspr.": "ursprünglich",
        "v. a.": "vor allem",
        "v.a.": "vor allem",
        "versch.": "verschiedene",
        "vllt.": "vielleicht",
        "z. T.": "zum Teil",
        "z.T.": "zum Teil",
        "z. Zt.": "zurzeit",
        "z.Zt.": "zurzeit",
        "zus.": "zusätzlich",
        "u. a.": "unter anderem",
        "u.a.": "unter anderem",
    },
    "en": {
        "a.k.a.": "also known as",
        "appt.": "appointment",
        "avg.": "average",
        "dept.": "department",
        "esp.": "especially",
        "govt.": "government",
        "incl.": "including",
        "Mt.": "Mount",
        "E.U.": "EU",
        "U.K.": "UK",
        "U.N.": "UN",
        "U.S.": "US",
    },
}
BEFORE_NUMBERS: _Table = {
    "de": {
        "Art.": "Artikel",
        "ca.": "ungefähr",
        "Kap.": "Kapitel",
        "max.": "maximal",
        "min.": "mindestens",
        "mind.": "mindestens",
        "Tab.": "Tabelle",
    },
    "de-en": {"Abb.": "Figure", "Abs.": "paragraph", "S.": "p."},
    "en": {"approx.": "about", "Fig.": "Figure", "sec.": "section", **_ENGLISH_MONTHS},
    "en-de": {"no.": "Nr.", "p.": "S."},
}
BEHIND_NUMBERS: _Table = {
    "de": {
        **_GERMAN_MONTHS,
        "Jh.": "Jahrhundert",
        "Min.": "Minuten",
        "Mio.": "Millionen",
        "Mrd.": "Milliarden",
        "Sek.": "Sekunden",
        "Std.": "Stunden",
    },
    "de-en": {"Abs.": "paragraph", "n. Chr.": "AD", "n.Chr.": "AD", "v. Chr.": "BC", "v.Chr.": "BC"},
    "en": {**_ENGLISH_MONTHS, "hrs.": "hours", "min.": "minutes", "mins.": "minutes", "sec.": "seconds"},
    "en-de": {
        "A.D.": "n. Chr.",
        "AD": "n. Chr.",
        "B.C.": "v. Chr.",
        "B.C.E.": "v. Chr.",
        "BC": "v. Chr.",
        "BCE": "v. Chr.",
        "C.E.": "n. Chr.",
        "CE": "n. Chr.",
    },
}
BEFORE_NAMES: _Table = {
    "de": {"Fr.": "Frau", "Hr.": "Herr", "Prof.": "Professor"},
    "en": {"Prof.": "Professor"},
}
CHAT_WORDS: _Table = {"en": {"b/c": "because", "pls": "please", "w/": "with", "w/o": "without"}}
