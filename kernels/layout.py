"""How int8 matrices lie in memory for the native operators; the same numbers are in source/kernels.h."""

PANEL_COLUMNS = 64
"""Columns that are stored together."""

QUAD = 4
"""Numbers of a column that lie side by side: as many as one instruction multiplies."""
