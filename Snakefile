"""Every report is a job, and so is every chunk of trainings. `make reports` writes plan.json, and runs this beside it.

Marks, in done/, order the jobs of one plan. Whether something is finished is decided by the cache of trained models
and by the pages themselves, so that a lost mark loses nothing. Memory, time and GPUs of jobs: profiles/.
"""

import json
from pathlib import Path

PLAN = json.loads(Path("plan.json").read_text())
JOBS = PLAN["jobs"]
HERE = str(Path.cwd())


def after(wildcards):
    return ancient([f"done/{name}" for name in JOBS[wildcards.job]["after"]])


def gpu_runs(wildcards):
    return int(JOBS[wildcards.job]["device"] == "cuda")


def priority(wildcards):
    """Trainings before reports, and first a report that chooses and trains: no long job is left for the end."""
    return 2 * JOBS[wildcards.job]["first"] + ("runs" in JOBS[wildcards.job])


localrules:
    all,


rule all:
    input:
        [f"done/{name}" for name in JOBS],


rule train:
    input:
        after,
    output:
        "done/{job,[0-9a-f]{12}}",
    log:
        "logs/{job}.log",
    priority: priority
    resources:
        gpu_runs=gpu_runs,
    shell:
        "exec > {log:q} 2>&1; cd {PLAN[project]:q} && exec {PLAN[python]:q} -m tools.sweep.jobs {HERE:q} {wildcards.job:q}"


use rule train as report with:
    output:
        "done/{job,.*[^0-9a-f].*}",
