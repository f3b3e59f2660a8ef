"""Words that usually begin a sentence if they have a capital behind a full stop, for eight languages."""

_PRONOUNS = " ".join(first + last for first in ("no", "some", "any", "every") for last in ("body", "one", "thing"))

STARTERS = {
    "en": _PRONOUNS
    + " the a an this that these those he she it we they you i his her its our their your my he's she's it's we're "
    "they're you're i'm i've i'll he'll she'll it'll we'll they'll there here then now but and or so yet because if "
    "when while where what who whom whose why how which after before since until although though however in on at by "
    "for from with without of to as do does did don't doesn't didn't is are was were can could will would should may "
    "might must have has had not no yes please let every each all some many most both few several another other "
    "today tomorrow yesterday later soon once still also even "
    "only just maybe perhaps finally meanwhile moreover therefore thus instead more others use call see ask go come "
    "read write turn open",
    "de": "der die das den dem des ein eine einen einem einer eines er sie es wir ihr ich du man sein seine ihre unser "
    "unsere mein meine dein deine dieser diese dieses diesen diesem jener jene jeder jede jedes alle viele einige "
    "manche keine kein keiner niemand jemand nichts alles etwas hier da dort dann danach darauf daher deshalb deswegen "
    "damit davor dabei jetzt nun heute morgen gestern später bald schon noch auch nur aber und oder denn doch sondern "
    "weil wenn als ob dass obwohl während bevor nachdem seit bis in im an am auf aus bei beim für mit nach von vom vor "
    "zu zum zur über unter zwischen durch gegen ohne um was wer wie wo wann warum welche welcher welches wohin ja nein "
    "nicht bitte ist sind war waren hat haben hatte wird werden wurde kann können muss soll so sonst zwar immer oft "
    "manchmal vielleicht davon darin dadurch trotzdem außerdem allerdings jedoch zuerst zuletzt endlich leider laut "
    "wegen trotz komm geh sieh siehe andere beide mehr",
    "fr": "le la les l un une des du de d ce cet cette ces c il elle ils elles on nous vous je j tu son sa ses leur "
    "leurs mon ma mes ton ta tes notre nos votre vos qui que qu quoi dont où quand comment pourquoi combien quel "
    "quelle puis ensuite alors mais et ou or donc car ni si lorsque lorsqu parce puisque comme après avant depuis "
    "pendant dans en sur sous avec sans pour par vers entre à au aux là ici maintenant aujourd'hui hier demain bientôt "
    "chez toujours jamais rien personne tout tous toute toutes chaque plusieurs certains certaines aucun aucune "
    "quelques beaucoup peu plus moins non oui ne n voilà voici est sont était ont a fut malgré cependant pourtant "
    "toutefois enfin d'abord ainsi peut-être merci cela ça ceux celui celle y autre autres même seul seule soyez venez "
    "allez voir voyez",
    "es": "el la los las lo un una unos unas él ella ellos ellas yo tú usted ustedes nosotros su sus mi mis tu tus "
    "nuestro nuestra este esta estos estas ese esa esos esas aquel aquella esto eso le les me te se nos que qué quien "
    "quién cuando cuándo donde dónde como cómo por porque para pero y o u e ni si sí no luego después entonces antes "
    "ahora hoy ayer mañana ya aún todavía también tampoco en de del a al con sin sobre entre desde hasta hacia según "
    "durante aquí ahí allí allá nada nadie todo todos toda todas cada muchos muchas pocos varios algunos algunas "
    "ningún ninguno otro otra otros otras más menos muy es son era fue fueron está están ha han había hay quizás "
    "tal vez sin además finalmente así aunque mientras gracias véase espere vive tiene murió costó fue hubo cuál "
    "cuáles cuánto",
    "it": "il lo la i gli le l un uno una un' del della dei delle degli dello egli lui lei loro noi voi io tu esso "
    "essa essi suo sua suoi sue mio mia miei mie tuo tua nostro nostra vostro questo questa questi queste quello "
    "quella quelli quelle ciò che chi cosa quando dove come perché quanto quale ma e ed o oppure se però quindi "
    "dunque poi dopo prima allora adesso ora oggi ieri domani già ancora sempre mai anche neppure in nel nella nei "
    "nelle di da dal dalla a al alla ai alle con senza su sul sulla per tra fra verso contro qui qua lì là nulla "
    "niente nessuno tutto tutti tutta tutte ogni molti molte pochi alcuni alcune altri altre altro più meno non sì no "
    "è sono era erano fu furono ha hanno aveva c'è ci si vi gli mi ti ne forse infine inoltre così mentre benché "
    "grazie dopo",
    "pt": "o a os as um uma uns umas ele ela eles elas eu tu você vocês nós seu sua seus suas meu minha meus minhas "
    "teu tua nosso nossa este esta estes estas esse essa esses essas aquele aquela isto isso aquilo lhe lhes me te se "
    "que quem quando onde como por porque para mas e ou nem sim não depois então antes agora hoje ontem amanhã já "
    "ainda também em no na nos nas de do da dos das ao à aos às com sem sobre entre desde até durante aqui ali lá nada "
    "ninguém tudo todos todas toda cada muitos muitas poucos vários alguns algumas nenhum outro outra outros outras "
    "mais menos muito é são era foi foram está estão tem há talvez além finalmente assim embora enquanto obrigado veja "
    "espere vive morreu custou qual quais quanto roma",
    "nl": "de het een hij zij ze wij we jij je u ik jullie hun haar zijn mijn jouw onze ons dit dat deze die er hier "
    "daar dan toen nu vandaag morgen gisteren later straks al nog ook maar en of want dus omdat als toen terwijl "
    "hoewel voordat nadat sinds totdat in op aan bij van voor met zonder naar uit over onder tussen door tegen om te "
    "wat wie waar hoe wanneer waarom welke welk ja nee niet geen niemand iemand niets alles iets iedereen alle veel "
    "enkele sommige andere elke ieder beide meer minder is was waren heeft hebben had wordt werd kan moet zal zou "
    "daarna daarom daardoor bovendien echter misschien eindelijk zo toch soms altijd nooit vaak helaas kom ga zie "
    "bel wacht lees",
    "pl": "on ona ono oni one ja ty my wy ten ta to ci te tego tej tym tych jego jej ich mój moja moje nasz nasza wasz "
    "swój kto co gdzie kiedy jak dlaczego czemu który która które czy że żeby bo ale i a oraz lub albo więc zatem "
    "jednak jeśli jeżeli gdy gdyby choć chociaż potem później wtedy teraz dziś dzisiaj wczoraj jutro już jeszcze też "
    "także tylko nawet tam tu tutaj stąd w we na do z ze od dla o po przy przed za pod nad bez między przez u nic nikt "
    "wszystko wszyscy każdy każda wielu wiele kilka niektórzy inni inne żaden nie tak jest są był była było były ma "
    "mają będzie może można trzeba proszę dziękuję dlatego ponadto wreszcie niestety zawsze nigdy często czasem zmarł "
    "wróci lubi nam nas mu jej im się",
}
