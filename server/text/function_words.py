"""Function words of languages, which recognise an ordinary sentence without the model of the language detector."""

from collections.abc import Mapping
from functools import cache

_WORDS: Mapping[str, str] = {
    "en": "the a an and or but if of to in on at by for with from about into over after before between under "
    "not no is are was were be been being am has have had do does did will would can could should may "
    "might must shall i you he she it we they me him her us them my your his its our their this that "
    "these those there here who whom whose which what when where why how all any some many much more most "
    "other than then so as very just only also too out up down off again never always because while don't "
    "doesn't didn't isn't aren't wasn't weren't can't couldn't won't wouldn't shouldn't i'm i've i'll i'd "
    "you're he's she's it's we're they're that's there's let's",
    "de": "der die das den dem des ein eine einen einem einer eines und oder aber wenn dass daß ob weil von zu "
    "zum zur im am an auf bei mit nach aus über unter vor zwischen für gegen ohne um durch nicht kein "
    "keine keinen keiner nie ist sind war waren sein bin bist seid hat haben hatte hatten habe hast wird "
    "werden wurde wurden würde würden kann können konnte könnte muss müssen musste soll sollte will "
    "wollen wollte darf ich du er sie es wir ihr mich dich ihn uns euch mir dir ihm ihnen mein meine "
    "meinen dein deine seine seinen ihre ihren unser unsere dieser diese dieses diesen hier da dort wer "
    "was wo wann warum wie alle viele mehr als so sehr nur auch noch schon immer wieder dann sich man "
    "bitte gibt etwas nichts",
    "fr": "le la les un une des du de et ou mais si que qui dans sur sous avec sans pour par chez entre ne pas "
    "jamais est sont était étaient être suis es sommes êtes ai as a avons avez ont avait fait peut je tu "
    "il elle nous vous ils elles me te se lui leur mon ma mes ton ta tes son sa ses notre votre nos vos "
    "ce cette ces cet où quand comment pourquoi tout tous toute plus très aussi ici là au aux c'est j'ai "
    "n'est qu'il d'un d'une l'on",
    "es": "el la los las un una unos unas y o pero si que de del en con sin por para sobre entre no nunca es "
    "son era fue ser soy eres somos está están estoy ha han he hay había yo tú él ella nosotros ellos me "
    "te se le les mi mis tu su sus este esta estos ese esa eso qué quién cuándo dónde cómo todo todos muy "
    "más también aquí al lo como cuando",
    "it": "il lo la i gli le un uno una e o ma se che di del della dei delle da dal in nel nella con su per tra "
    "fra non mai è sono era erano essere sei siamo ha ho hanno hai abbiamo io tu lui lei noi voi loro mi "
    "ti si ci mio mia suo sua questo questa quello quella chi cosa quando dove come perché tutto tutti "
    "molto più anche qui al alla",
    "pt": "o a os as um uma uns umas e ou mas se que de do da dos das em no na nos nas com sem por para sobre "
    "entre não nunca é são era foi ser sou está estão tem têm há eu tu ele ela nós eles elas me te lhe "
    "meu minha seu sua este esta isso isto quem quando onde como tudo todos muito mais também aqui ao à",
    "nl": "de het een en of maar als dat van te in op bij met naar uit over onder voor tussen niet geen nooit "
    "is zijn was waren ben bent heeft hebben had wordt worden werd kan kunnen moet zal ik jij je hij zij "
    "ze wij we jullie u mij hem haar ons mijn jouw deze dit die wie wat waar wanneer waarom hoe alle veel "
    "meer dan ook nog al hier er om aan",
    "pl": "i w z na do od po za przez dla o u nie jest są był była było byli być ma mam mają się że to ten ta "
    "te tego tej jak co kto gdzie kiedy dlaczego czy ale lub oraz ja ty on ona my wy oni mnie ciebie jego "
    "jej ich mój moja swój wszystko bardzo tylko już jeszcze tak tu tam który która które",
    "sv": "och att det som en ett är var på för med av till inte den de har jag du han hon vi ni om men så från "
    "kan ska vara hade mig dig sig min din sin eller när där här vad hur mycket mer också bara",
    "da": "og at det som en et er var på for med af til ikke den de har jeg du han hun vi om men så fra kan "
    "skal være havde mig dig sig min din sin eller når der her hvad hvordan meget mere også kun",
}

# Words of a language that are function words in another one.
_CONTENT: Mapping[str, str] = {
    "en": "man hat war die men bin dig sin son ton sur des par pour ten come far cosa tu mas uma dan mit tot",
    "de": "man war die also hat in so am an was will hier den des du per dir dann kan vor gut um se de van et la le",
}


@cache
def _shared_words() -> frozenset[str]:
    """Return the words that several languages have: they recognise none."""
    seen: set[str] = set()
    shared: set[str] = set()
    for words in _WORDS.values():
        own = set(words.split())
        shared |= seen & own
        seen |= own
    return frozenset(shared)


@cache
def function_words(language: str) -> frozenset[str]:
    """Return the function words of a language, in lower case; none for a language without a list."""
    return frozenset(_WORDS.get(language, "").split())


@cache
def distinctive_words(language: str) -> frozenset[str]:
    """Return the function words that only this language has."""
    return function_words(language) - _shared_words()


@cache
def words_of_others(language: str) -> frozenset[str]:
    """Return the function words that other languages have and this one has not."""
    others = frozenset(word for words in _WORDS.values() for word in words.split())
    return others - function_words(language) - frozenset(_CONTENT.get(language, "").split())
