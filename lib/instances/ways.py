"""What can be asked of some models: the exact adversary, or the search alone; and one option along several runs."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import torch

from lib.instances.correlating import correlate
from lib.instances.measuring import Quantity, measure_all
from lib.instances.summarising import summarise
from lib.quantities import tau_name
from lib.training import Trained


@torch.no_grad()
def way_of_adversary(trained: Sequence[Trained]) -> str:
    """ "exact" where every model has one output with an affine read-out, else "gradient", the search."""
    for one in trained:
        output = one.model(next(one.batches("test", 1)))
        if output.logits.shape[1] != 1 or one.model.token_logits(output) is None:
            return "gradient"
    return "exact"


def taus_along(
    trained: Sequence[Trained], option: str, quantities: Mapping[str, Quantity], pairs: Sequence[tuple[str, str]]
) -> pd.DataFrame:
    """The taus of runs that differ in an option of training, in the columns of `summarise` and the option's.

    No row where nothing was trained, such as of a model of one's own.
    """
    names = [tau_name(pair) for pair in pairs]
    if not trained:
        return pd.DataFrame(columns=["quantity", "value", option])
    measured = correlate(measure_all(trained, quantities), pairs)
    values = np.repeat([one.run.option(option) for one in trained], [len(one.corpus.test) for one in trained])
    groups = measured.groupby(values)
    return pd.concat([summarise(rows, names).assign(**{option: value}) for value, rows in groups])
