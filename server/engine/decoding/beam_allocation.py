"""Allocation of beams to banks of candidates."""


def bank_sizes(beam_size: int, num_candidates: list[int]) -> list[int]:
    """Return the number of beams of each bank, at most its number of candidates.

    See step 2 of server/engine/decoding/constrained_beam_search.py.
    """
    num_banks = len(num_candidates)
    wanted = [beam_size // num_banks] * num_banks
    wanted[-1] += beam_size % num_banks
    sizes = [0] * num_banks
    left = 0
    for bank in reversed(range(num_banks)):
        left += wanted[bank]
        sizes[bank] = min(left, num_candidates[bank])
        left -= sizes[bank]
    for bank in reversed(range(num_banks)):
        more = min(left, num_candidates[bank] - sizes[bank])
        sizes[bank] += more
        left -= more
    return sizes
