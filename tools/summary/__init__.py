"""All studies together: every claim on every dataset, and every published value with ours."""

from lib.results import FOLDER, LEFT
from tools.summary.markdown import markdown
from tools.summary.studies import Study, kept, preferred, study
from tools.summary.values import counts, is_setting_or_size, tolerance, values
from tools.summary.verdicts import VERDICTS, counted, in_words, verdicts

__all__ = [
    "FOLDER",
    "LEFT",
    "VERDICTS",
    "Study",
    "counted",
    "counts",
    "in_words",
    "is_setting_or_size",
    "kept",
    "markdown",
    "preferred",
    "study",
    "tolerance",
    "values",
    "verdicts",
]
