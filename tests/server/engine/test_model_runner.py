import numpy as np
import pytest

from server.engine.model_runner import NotFinite, check_finite


def test_the_best_candidate_of_each_row_must_be_a_number() -> None:
    check_finite(np.array([[1.0, -np.inf], [0.0, np.nan]]))
    check_finite(np.zeros((0, 2)))
    with pytest.raises(NotFinite, match="the logits of 2 of 3 rows are not finite"):
        check_finite(np.array([[np.nan, 1.0], [0.0, 0.0], [-np.inf, 0.0]]))
