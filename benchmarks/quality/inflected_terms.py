"""Terms of a glossary in the form that a sentence needs: `python -m benchmarks.quality.inflected_terms [BUNDLE]`.

Fifty English sentences with a German term in its base form. A translation is right if it has one of the forms that the
sentence allows as a word of its own, and no other form of the term beside it. `--exact` requires the base form, as
`required_phrases` does.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import regex
import typer

from benchmarks.in_process import InProcessEngine
from benchmarks.paths import DEFAULT_BUNDLE
from bundle.loading import load_bundle
from server.interface.decoding_options import NO_OPTIONS
from server.interface.request import SentenceParams
from server.text.tokenizers.registry import open_tokenizer
from server.translation.sentence_params import ParamsResolver

# Sentence, base form of the term, forms that are right.
_CASES = tuple(
    tuple(line.split(" | "))
    for line in """\
I saw the student at school. | Student | Studenten
I helped the student. | Student | Studenten
The students are in the room. | Student | Studenten
I saw the man in the garden. | Mensch | Menschen
Many people live here. | Mensch | Menschen
I know your neighbour. | Nachbar | Nachbarn
My neighbours have a dog. | Nachbar | Nachbarn
I asked the boy. | Knabe | Knaben
The boys play in the garden. | Knabe | Knaben
The president spoke to the soldier. | Soldat | Soldaten
We bought three tickets. | Karte | Karten
She has two tickets. | Karte | Karten
The bus stops are new. | Haltestelle | Haltestellen
There are many questions. | Frage | Fragen
He answered all questions. | Frage | Fragen
Two women came. | Frau | Frauen
The women are at home. | Frau | Frauen
The streets are wet. | Straße | Straßen
I have two sisters. | Schwester | Schwestern
The doors are open. | Tür | Türen
The cars are new. | Auto | Autos
He has two cars. | Auto | Autos
The hotels are full. | Hotel | Hotels
The days are long. | Tag | Tage
I stayed for three days. | Tag | Tage Tagen
The dogs are old. | Hund | Hunde
He has three dogs. | Hund | Hunde
The shoes are too small. | Schuh | Schuhe
The books are on the tables. | Tisch | Tische Tischen
I sat with my friends. | Freund | Freunde Freunden
My friends are here. | Freund | Freunde
The teacher talked with the teachers. | Lehrer | Lehrer Lehrern
The children are small. | Kind | Kinder
The pictures are beautiful. | Bild | Bilder
I have a red car. | rot | rotes roten
The red car is new. | rot | rote roten
The old man is tired. | alt | alte
I have an old house. | alt | altes
It was a good day. | schön | schöner
This is a beautiful house. | schön | schönes
She is a beautiful woman. | schön | schöne
We have a small dog. | klein | kleinen
The small children sleep. | klein | kleinen kleine
He lives in a big city. | groß | großen
That is a big problem. | groß | großes
I need a new computer. | neu | neuen
The new teacher is here. | neu | neue
The water is in a black bottle. | schwarz | schwarzen
He has a young wife. | jung | junge
The young man laughed. | jung | junge""".splitlines()
)


def main(
    bundle_folder: Annotated[Path, typer.Argument(metavar="BUNDLE")] = DEFAULT_BUNDLE,
    exact: Annotated[bool, typer.Option("--exact", help="require the base form")] = False,
) -> None:
    """Print each translation that is not right, and how many are."""
    bundle = load_bundle(bundle_folder)
    tokenizer, engine = open_tokenizer(bundle), InProcessEngine(bundle)
    sources = [tokenizer.encode(sentence, "de") for sentence, *_ in _CASES]
    exact_params = SentenceParams(beam_size=4, max_new_tokens=64)
    resolver = ParamsResolver(exact_params, NO_OPTIONS, tokenizer, bundle.config.shapes, "de")
    params = [
        replace(exact_params, required_phrases=(tuple(tokenizer.encode_target(term)),))
        if exact
        else resolver.resolve(0, len(source), ((term,),))
        for source, (_, term, _) in zip(sources, _CASES, strict=True)
    ]
    done = engine.decode_each(sources, params)
    num_right = 0
    for (sentence, term, forms), completion in zip(_CASES, done, strict=True):
        translation = tokenizer.decode(completion.hypotheses[0].token_ids)
        written = set(regex.findall(rf"\b{term}(?:e|e[mnrs]|ern?|n|nen|s)?\b", translation, regex.IGNORECASE))
        if written and {each.lower() for each in written} <= set(forms.lower().split()):
            num_right += 1
        else:
            print(f"{sentence} | {term}: {translation}")
    print(f"{num_right} of {len(_CASES)} in a form that is right")


if __name__ == "__main__":
    typer.run(main)
