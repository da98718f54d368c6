"""How papermill runs a notebook: as it always does, but it does not write all of it anew twice a cell.

With a page's charts in it a notebook has megabytes, and eighty cells wrote it a hundred and sixty times: a third of the
time of a small report.
"""

from papermill.engines import NBClientEngine, NotebookExecutionManager, papermill_engines

ENGINE = "sparing"  # its name among papermill's
SECONDS = 10  # between two times that the notebook is written as far as it ran; at its end it always is


class Sparing(NBClientEngine):
    """papermill's own engine, the notebook written every so many SECONDS."""

    @classmethod
    def execute_managed_notebook(cls, nb_man: NotebookExecutionManager, kernel_name: str, **options) -> None:
        write = nb_man.save

        def save(**given) -> None:
            if (nb_man.now() - nb_man.last_save_time).total_seconds() >= SECONDS:
                write(**given)

        nb_man.save = save
        try:
            super().execute_managed_notebook(nb_man, kernel_name, **options)
        finally:
            del nb_man.save  # what ends the run, well or not, writes


papermill_engines.register(ENGINE, Sparing)
