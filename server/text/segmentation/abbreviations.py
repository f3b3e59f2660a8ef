"""Abbreviations of eight languages, by their effect on the full stop behind them.

An abbreviation is written without its last full stop and without spaces: `z.b` is "z. B." and "z.B.". In lower case it
matches any case; with a capital only itself.
"""

from dataclasses import dataclass
from functools import cache

from server.text.segmentation.starters import STARTERS

_TITLES = "mr mrs ms dr prof maj sgt capt mt ft"  # in names, in texts of any language

# Never the end of a sentence: titles, and words that need another one behind them.
_INSIDE = {
    "en": "dr mr mrs ms mx prof rev hon gen col lt lt.col maj sgt cpl capt cmdr adm pvt gov sen rep pres supt st "
    "ste mt messrs mmes e.g i.e viz cf approx ca v vs esp incl excl dept univ assn bros bldg rm apt intl natl "
    "min max avg est asst assoc insp det atty amb appl phys",
    "de": "u o fa dr prof dipl ing med jur phil rer.nat h.c hr hrn frl st hl z.b z.bsp zb d.h "
    "dh u.a i.d.r i.a i.allg i.e bspw bzw bzgl ca circa rd insg ggf vgl evtl inkl exkl einschl zzgl abzgl max "
    "mind min gem lt betr bes sog v.a v.d a.d o.g s.o s.u m.e u.u z.t z.zt o.ä gez geb gegr verh gest ehem allg "
    "gebr fam nat dr.-ing entspr tel urspr lat griech engl franz dt österr wg zw versch hrsg hg red i.v fr",
    "fr": "M MM dr pr prof me mgr st ste gal gén col cdt cne lt cap env approx c.-à-d càd p.ex par.ex cf v.g bd "
    "boul av rte éd coll dir trad min max tél s.m mme mmes mlle mlles bibl adj adv resp dépt arr ets",
    "es": "sr sra srta sres sras srtas dr dra dres D d.ª dª dña prof profa lic ing arq gral gen cap cnel tte sgto "
    "cmte alm sto sta fr hno hna mons pbro excmo excma ilmo ilma rvdo lcdo lcda ntra ntro ud uds vd vds p.ej pej aprox "
    "ca máx mín avda av avd pza pl ctra urb dpto depto dcho izda tel teléf fax ed edit cf cfr vid núm núms nº dir min "
    "prov s.m s.a.r m.ª mª atte admón pdte pdta vdo sec subsec fdo adj adv gob dip sen pje",
    "it": "sig sigg sig.ra sig.na sig.ri dott dott.ssa dr dr.ssa prof prof.ssa ing avv sen geom rag arch gen col "
    "cap magg ten serg com.te comm cav mons rev S ss spett egr gent gent.mo gent.ma ill.mo chiar.mo preg cfr "
    "cf per.es ad.es p.es v ca max min tel ed rist p.zza v.le c.so l.go reg dir min.ro pres vicepres segr d.l "
    "d.lgs agg avv.ti on c.a f.lli card",
    "pt": "sr sra srta srs sras dr dra drs dras prof profa profs eng enga arq gen cel cap maj ten sgt alm pe D S "
    "sto sta mons exmo exma ilmo ilma v.exa v.ex.ª v.s v.sa p.ex aprox ca cf cfr máx mín min av avda pç pça r "
    "trav rod tel telef ed edit m.ª mª dep sen gov pres dir obs adj adv dpto depto núm Al Des",
    "nl": "dhr mevr mw mej dr drs mr ir ing prof ds bc gen kol kap sgt maj lt min max st ca bijv bv o.a d.w.z m.a.w "
    "t.a.v m.b.t m.u.v i.v.m i.p.v i.t.t t.g.v t.o.v t.b.v m.i a.d m.n t.z.t incl excl ong evt resp vgl cf "
    "vnl nl.l fa fam tel jkvr jhr wed e.d.n gebr geb mgr zr br v.d v.h zgn afd vert",
    "pl": "dr prof hab inż mgr mec lek arch ks bp abp kard św bł gen płk ppłk mjr kpt por ppor sierż ul al pl os np "
    "m.in tzw tzn tj zob porównaj ok wg red im min maks mln mld tel woj pow śp ob dot właśc dosł ang "
    "niem fr łac ros wł w s.c dyr kier prez sekr zast nacz adm kmdr chor plut sp doc med asp m.st przeł tyg dz.u",
}  # fmt: skip

# The end before a capital: they stand at the end of a list or a phrase.
_LAST = {
    "en": "etc al",
    "de": "usw usf etc u.v.m u.a.m u.dgl o.dgl u.ä o.k",
    "fr": "etc",
    "es": "etc",
    "it": "ecc etc",
    "pt": "etc",
    "nl": "enz etc enzv e.d",
    "pl": "itd itp etc r p.n.e n.e zł gr szt egz m.p",
}  # fmt: skip

# The end only before a word that usually begins a sentence. So are acronyms with full stops, and initials.
_EITHER = {
    "en": "inc ltd corp co llc bros jr sr esq ph.d m.d b.a m.a d.c u.s u.k u.n e.u u.s.a a.m p.m a.d b.c c.e b.c.e "
    "ave blvd rd sq hwy st oz lb lbs ft tbsp tsp gal yd min sec hr hrs yr yrs",
    "de": "mio mrd tsd dipl.-ing dipl.-kfm str pl co kg ag v.chr n.chr a.m min std sek jh jhd jhdt st mo di mi do fr "
    "sa so jr sen",
    "fr": "cie jr sr av.j.-c apr.j.-c j.-c p.-d.g h min ha kg éts op.cit loc.cit ibid suiv",
    "es": "s.a s.l s.r.l cía cia ee.uu rr.hh jj.oo cc.aa ff.aa a.c d.c a.m p.m jr kg km m cm h min op.cit ibid hnos "
    "cto ss.mm",
    "it": "s.p.a s.r.l s.n.c s.a.s a.c d.c f.lli jr sr kg km h min op.cit ibid c.p",
    "pt": "s.a ltda lda cia e.u.a a.c d.c a.m p.m jr kg km m cm h min op.cit ibid",
    "nl": "b.v n.v v.o.f v.chr n.chr v.s v.n a.u.b jr sr kg km min sec jl a.d",
    "pl": "tys jw br in s.a z.o.o o.o sp.z.o.o jr sen godz min sek kg km cm w",
}  # fmt: skip

# Inside a sentence before a number, a Roman one included.
_NUMBERED = {
    "en": "no nos p pp fig figs vol vols ch chap sec sect art par para eq eqs ex app ver v ed tab pt op rm ext tel "
    "ph jan feb mar apr jun jul aug sep sept oct nov dec tue tues thu thur thurs fri c r fl mon wed",
    "de": "nr nrn s ss abb tab kap bd bde abs art ziff anm aufl jg h heft lfd.nr pos rn rdnr abschn anl bl sp z jan "
    "feb mrz apr jun jul aug sep sept okt nov dez teil str tel hausnr pkt lit ed op kw",
    "fr": "no nos n p pp fig art chap vol t éd ch al par sect ann tab réf tél ex op no.s janv févr fév avr juil "
    "sept oct nov déc lun mar mer jeu ven sam dim h vers",
    "es": "n.º n.os nº núm núms pág págs p pp fig figs art arts cap caps vol vols t ed lib sec tab ref tel ej op "
    "ene feb mar abr may jun jul ago sep sept oct nov dic lun mié jue vie sáb dom apdo párr km c.p",
    "it": "n nn num sec secc pag pagg p pp fig figg art artt cap capp vol voll t ed sez tab rif tel es op par co "
    "lett all tav tavv int gen feb mar apr mag giu lug ago set sett ott nov dic lun mart mer gio ven sab dom",
    "pt": "n n.º n.os nº núm pág págs p pp fig figs art arts cap caps vol vols t ed liv sec séc tab ref tel ex op "
    "inc jan fev mar abr mai jun jul ago set out nov dez seg ter qua qui sex sáb dom al par apto est sécs",
    "nl": "nr nrs blz bladz pag p pp fig afb tab hfst h hs art artt par dl deel bd vol jrg ed tel vs jan feb mrt "
    "apr jun jul aug sep sept okt nov dec ma di wo do vr za zo bijl str",
    "pl": "nr s ss str rys tab rozdz roz art par poz pkt ust t tom cz zesz vol ryc il wyd lit tel godz zał stycz "
    "lut mar kwiet czerw lip sierp wrz paźdz list grudz pon wt śr czw pt sob niedz op ed dz wers wew ur",
}  # fmt: skip

# Endings of compounds before a number.
_NUMBERED_ENDINGS = {"de": "str nr", "nl": "str nr"}


@dataclass(frozen=True, slots=True)
class Abbreviations:
    """Abbreviations and words that begin sentences, of one language.

    `parts` are abbreviations of several parts, and their beginnings: `i.d` and `i.d.r` of `i.d.r`.
    """

    inside: frozenset[str]
    last: frozenset[str]
    either: frozenset[str]
    numbered: frozenset[str]
    numbered_endings: tuple[str, ...]
    parts: frozenset[str]
    starters: frozenset[str]


@cache
def abbreviations_of(language: str) -> Abbreviations | None:
    """Return the abbreviations of a language such as `en` or `pt-BR`; None if there is no table for it."""
    code = language.partition("-")[0].lower()
    if code not in _INSIDE:
        return None
    inside, last, either, numbered = (frozenset(table[code].split()) for table in (_INSIDE, _LAST, _EITHER, _NUMBERED))
    split = [each.split(".") for each in inside | last | either]
    parts = frozenset(".".join(each[:count]) for each in split for count in range(2, len(each) + 1))
    endings = tuple(_NUMBERED_ENDINGS.get(code, "").split())
    inside |= frozenset(_TITLES.split())
    return Abbreviations(inside - either, last, either, numbered, endings, parts, frozenset(STARTERS[code].split()))
