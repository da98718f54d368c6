"""All studies together: every claim on every dataset, and every published value with ours."""

from lib.summary.markdown import markdown
from lib.summary.studies import FOLDER, LEFT, PAPER_OF, Study, kept, preferred, study
from lib.summary.values import counts, is_setting_or_size, tolerance, values
from lib.summary.verdicts import VERDICTS, counted, in_words, verdicts

__all__ = [
    "FOLDER",
    "LEFT",
    "PAPER_OF",
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
