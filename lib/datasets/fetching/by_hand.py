"""What no program may fetch: a person has to ask for it, and the fetch command only says how."""

from lib.datasets.fetching.sources import Source
from lib.datasets.mimic import ABOUT
from lib.datasets.mimic.tables import ACCESS, PAGE

BY_HAND = {
    "mimic": Source(
        "mimic",
        "MIMIC-III discharge summaries: diabetes and anemia",
        "classification",
        ABOUT["licence"],
        ABOUT["citation"],
        PAGE,
        addresses=(),
        makes=("mimic",),
        by_hand=ACCESS,
    )
}
