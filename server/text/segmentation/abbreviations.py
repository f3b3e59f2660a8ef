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
    "en": "dr mr mrs ms mx prof rev hon gen col lt lt.col maj sgt cpl capt cmdr adm pvt gov sen rep pres supt st ste "
    "mt messrs mmes fr e.g i.e eg ie viz cf approx ca v vs esp incl excl dept univ assn bros bldg rm apt ave.no "
    "nos.no intl natl min max avg est repr gen.sec asst assoc hr.dept insp det atty amb chanc dir",
    "de": "dr prof dipl dipl.-ing dipl.-kfm ing med jur phil rer.nat h.c hr hrn fr frl st sr.hl hl z.b z.bsp zb d.h dh "
    "u.a i.d.r i.a i.allg i.e bspw bzw bzgl ca circa etwa.c rd insg ggf gegebenenf vgl evtl inkl exkl einschl "
    "zzgl abzgl max mind min gem lt betr bes sog v.a v.d a.d o.g s.o s.u m.e u.u z.t z.zt u.ä.m o.ä u.co gez geb "
    "verh gest ehem allg entspr mio mrd tsd tel str.nr std.kilometer urspr lat griech engl franz dt österr schweiz "
    "wg zw versch weit.usw hrsg hg red i.v i.a. p.a.z nordd südd röm kath ev oberst.lt gen.lt sen.rat ass",
    "fr": "M MM dr pr prof me mgr mgr.s st ste gal gén col cdt cne lt cap env approx c.-à-d càd p.ex par.ex ex cf "
    "v.g bd boul av ch.de rte pl.de éd coll dir trad min max tél fig.s s.e s.m mme mmes mlle mlles bibl adj adv "
    "resp dépt arr hab",
    "es": "sr sra srta sres sras srtas dr dra dres D d.ª dª dña prof profa lic ing arq gral gen cap cnel col tte sgto "
    "cmte alm sto sta fr hno hna mons pbro excmo excma ilmo ilma rvdo ud uds vd vds p.ej pej aprox ca máx mín avda "
    "av avd c.mayor pza pl ctra urb dpto depto dcho izda tel teléf fax ed edit cf cfr vid núm núms nº dir min prov "
    "s.m s.a.r m.ª mª atte admón pdte pdta vdo sec subsec fdo adj adv gob dip sen",
    "it": "sig sigg sig.ra sig.na sig.ri dott dott.ssa dr dr.ssa prof prof.ssa ing avv on sen geom rag arch gen col "
    "cap magg ten serg com.te comm cav mons rev don S ss spett egr gent gent.mo gent.ma ill.mo chiar.mo preg "
    "cfr cf per.es ad.es p.es es v ca circa.c max min tel ed rist p.zza v.le c.so l.go via.n f.lli c.a reg dir "
    "min.ro pres vicepres segr d.l d.lgs agg avv.ti",
    "pt": "sr sra srta srs sras dr dra drs dras prof profa profs eng enga arq gen cel cap maj ten sgt alm pe fr ir D "
    "S sto sta mons exmo exma ilmo ilma v.exa v.ex.ª v.s v.sa p.ex aprox ca cf cfr máx mín min av avda pç pça r trav "
    "rod tel telef ed edit m.ª mª dep sen gov pres dir obs adj adv dpto depto núm jr.silva al",
    "nl": "dhr mevr mw mej dr drs mr ir ing prof ds pater.p bc gen kol kap sgt maj lt lt.gen min max st ca circa.c "
    "bijv bv b.v.b o.a d.w.z m.a.w t.a.v m.b.t m.u.v i.v.m i.p.v i.t.t n.a.v t.g.v t.o.v t.b.v o.l.v m.i a.d m.n "
    "t.z.t z.g zgn z.g.a incl excl ong evt resp vgl cf vnl nl.l fa fam tel a.u.b.n jkvr jhr wed weduwe.w e.d.n "
    "gebr geb mgr zr br aug.h v.d v.h",
    "pl": "dr prof hab inż mgr mec lek arch ks bp abp kard o.jan św bł gen płk ppłk mjr kpt por ppor sierż "
    "ul al pl os np m.in tzw tzn tj zob por porównaj ok wg red im min maks tys mln mld tel woj pow gm "
    "pt ps.p sp spółka.z i.in in śp ob dot ds tzn.ż właśc dosł ang niem fr łac gr ros wł w s.c s.p jw dyr "
    "kier prez sekr zast zca nacz adm kmdr chor plut",
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
}

# The end only before a word that usually begins a sentence. So are acronyms with full stops, and initials.
_EITHER = {
    "en": "inc ltd corp co llc bros jr sr esq ph.d m.d b.a m.a d.c u.s u.k u.n e.u u.s.a a.m p.m a.d b.c c.e b.c.e "
    "ave blvd rd sq hwy st oz lb lbs ft in tbsp tsp qt gal yd mi min sec hr hrs est cent yr yrs",
    "de": "str pl nr.x co kg ag v.chr n.chr v.u.z a.m min std sek jh jhd jhdt st mo di mi do fr sa so jr sen",
    "fr": "cie jr sr av.j.-c apr.j.-c j.-c p.-d.g h min ha kg éts op.cit loc.cit ibid suiv",
    "es": "s.a s.l s.r.l cía cia ee.uu rr.hh jj.oo cc.aa ff.aa a.c d.c a.m p.m a.de.c jr kg km m cm h min op.cit ibid "
    "hnos cto ss",
    "it": "s.p.a s.r.l s.n.c s.a.s a.c d.c f.lli jr sr kg km h min op.cit ibid c.p",
    "pt": "s.a ltda lda cia e.u.a a.c d.c a.m p.m jr kg km m cm h min op.cit ibid",
    "nl": "b.v n.v v.o.f v.chr n.chr v.s v.n a.u.b jr sr kg km u min sec jl blz.x str a.d",
    "pl": "s.a z.o.o o.o sp.z.o.o jr sen godz min sek kg km cm w",
}  # fmt: skip

# Inside a sentence before a number, a Roman one included.
_NUMBERED = {
    "en": "no nos p pp fig figs vol vols ch chap sec sect art par para eq eqs ex app ver v ed tab pt op rm ext tel ph "
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun c r fl b d",
    "de": "nr nrn s ss abb tab kap bd bde abs art ziff anm aufl jg h heft lfd.nr pos rn rdnr abschn anl bl sp z "
    "jan feb mrz apr jun jul aug sep sept okt nov dez teil str tel hausnr pkt lit ed op kw",
    "fr": "no nos n p pp fig art chap vol t éd ch al par sect ann tab réf tél ex op no.s "
    "janv févr fév avr juil sept oct nov déc lun mar mer jeu ven sam dim h vers",
    "es": "n.º n.os nº núm núms pág págs p pp fig figs art arts cap caps vol vols t ed lib sec tab ref tel ej op "
    "ene feb mar abr may jun jul ago sep sept oct nov dic lun mié jue vie sáb dom apdo párr km c.p",
    "it": "n nn num pag pagg p pp fig figg art artt cap capp vol voll t ed sez tab rif tel es op par co lett all "
    "gen feb mar apr mag giu lug ago set sett ott nov dic lun mart mer gio ven sab dom",
    "pt": "n n.º n.os nº núm pág págs p pp fig figs art arts cap caps vol vols t ed liv sec séc tab ref tel ex op inc "
    "jan fev mar abr mai jun jul ago set out nov dez seg ter qua qui sex sáb dom al par",
    "nl": "nr nrs blz bladz pag p pp fig afb tab hfst h hs art artt par dl deel bd vol jrg lid ed tel op vs "
    "jan feb mrt apr jun jul aug sep sept okt nov dec ma di wo do vr za zo bijl str § no",
    "pl": "nr s ss str rys tab rozdz roz art par poz pkt ust t tom cz zesz vol ryc il wyd lit tel godz zał "
    "stycz lut mar kwiet czerw lip sierp wrz paźdz list grudz pon wt śr czw pt sob niedz op ed dz wers",
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
