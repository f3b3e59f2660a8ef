"""Memory layout of int8 matrices for the native operators; equal to source/kernels.h."""

PANEL_COLUMNS = 64
"""Columns that are stored together."""

QUAD = 4
"""Adjacent numbers of a column: as many as one instruction multiplies."""

MAX_HEAD_DIM = 256
"""Largest width of an attention head."""
