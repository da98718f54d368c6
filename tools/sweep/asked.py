"""A report that is asked for: its name, whether it is there, and what it lacks."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lib.datasets import DataError
from tools.report import parameters
from tools.report.run import fingerprint, is_made_from
from tools.sweep.needs import Corpora, Request
from tools.sweep.plan import Work, work_of


@dataclass(frozen=True)
class Asked:
    """A notebook, by its file, and the parameters that were given for it."""

    notebook: Path
    values: dict[str, Any]

    @cached_property
    def name(self) -> str:
        return parameters.report_name(self.notebook, self.values)

    @cached_property
    def request(self) -> Request:
        known = parameters.known_parameters(self.notebook)
        return Request(self.notebook.stem, {name: one.default for name, one in known.items()} | self.values)

    def told(self) -> dict[str, Any]:
        """What the job that makes the report must know."""
        return {"notebook": str(self.notebook), "values": self.values, "settings": self.request.settings}

    def is_up_to_date(self, folder: Path) -> bool:
        """Whether `folder` has its page, made from what is here now."""
        page = folder / f"{self.name}.html"
        return page.exists() and is_made_from(page, fingerprint(self.notebook, self.values))

    def work(self, corpora: dict[str | None, Corpora]) -> Work:
        """What it lacks; `corpora` has those that were loaded before, by where data lie.

        Raises:
            Refused: its parameters cannot be; the message says what was seen and what is allowed.
        """
        home = self.request.data_home
        try:
            return work_of(self.request, corpora.setdefault(home, Corpora(home)))
        except (DataError, KeyError, ValueError) as error:
            raise parameters.Refused(error.args[0]) from error
