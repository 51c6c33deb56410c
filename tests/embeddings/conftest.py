import numpy as np
import pytest

from conceptnb.embeddings.shapes3d.factors import FACTOR_VALUES, FACTORS


@pytest.fixture(scope="session")
def published_labels():
    """Turn value indices (n, 6) into labels as the published file has them."""

    def labels(factors):
        columns = [FACTOR_VALUES[name][factors[:, k]] for k, name in enumerate(FACTORS)]
        return np.stack(columns, axis=1)

    return labels
