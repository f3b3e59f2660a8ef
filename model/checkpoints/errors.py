"""The error of a checkpoint that cannot be used; without torch."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be read or contradicts its settings; the message names the file or the weight."""
