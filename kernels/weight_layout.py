"""How int8 matrices lie in memory for the native operators, and how wide heads may be: as in source/kernels.h."""

PANEL_COLUMNS = 64
"""Columns that are stored together."""

QUAD = 4
"""Numbers of a column that lie side by side: as many as one instruction multiplies."""

MAX_HEAD_DIM = 256
"""Numbers of a head's query, key or value that attention takes at most."""
