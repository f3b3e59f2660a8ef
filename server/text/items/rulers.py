"""First names of rulers and popes: a Roman number behind one is an ordinal, and not the number of a part or a war."""

_NAMES = """
Adrian Albert Albrecht Alexander Alfonso Antiochus Baldwin Benedict Carl Carlos Catherine Charles Childeric Christian
Clement Conrad Constantine Darius Edward Elizabeth Eric Eugene Felipe Ferdinand Francis Franz Frederick Friedrich Georg
George Gregory Gustav Haakon Harald Heinrich Henri Henry Innocent Ivan James Johann John Joseph Juan Julius Justinian
Karl Konrad Leo Leopold Louis Ludwig Luis Maximilian Mehmed Mithridates Napoleon Nicholas Olaf Oscar Otto Paul Pedro
Peter Philip Philippe Pius Ptolemy Ramesses Ramses Richard Robert Rudolf Rudolph Sigismund Sixtus Stephen Theodosius
Thutmose Umberto Urban Victor Wilhelm William
"""
RULERS = frozenset(_NAMES.split())
