"""Every training and every report is a job. `make reports` writes the plan, plan.json, and runs this in its folder.

Marks (trained/, made/, chosen/) order the jobs of one plan. Whether something is finished is decided by the cache of
trained models and by the pages themselves, so that a lost mark loses nothing. Memory, time and GPUs of jobs: profiles/.
"""

import json
from pathlib import Path

PLAN = json.loads(Path("plan.json").read_text())
JOB = f"cd {PLAN['project']!r} && exec {PLAN['python']!r} -m tools.sweep.jobs"
HERE = str(Path.cwd())


def job(name):
    """A job of the plan, or one that was added after a choice on dev."""
    chosen = [json.loads(path.read_text())["jobs"] for path in Path("chosen").glob("*.json")]
    return {name: found for jobs in (PLAN["jobs"], *chosen) for name, found in jobs.items()}[name]


def trained(names):
    return [f"trained/{name}" for name in names]


def needed(report):
    """The trainings before a report; where dev chooses they are known only when its sweeps are trained."""
    planned = PLAN["reports"][report]
    if planned["chooses"]:
        planned = json.loads(Path(checkpoints.choose.get(report=report).output[0]).read_text())
    return trained(planned["needs"])


def wanted(wildcards):
    if PLAN["trainings_only"]:
        return [mark for report in PLAN["reports"] for mark in needed(report)]
    return [f"made/{report}" for report in PLAN["reports"]]


wildcard_constraints:
    job="[0-9a-f]+",
    report="[^/]+",


localrules:
    all,


rule all:
    input:
        wanted,


rule train:
    input:
        lambda wildcards: ancient(trained(job(wildcards.job)["after"])),
    output:
        "trained/{job}",
    log:
        "logs/{job}.log",
    priority: lambda wildcards: job(wildcards.job)["rank"]
    resources:
        gpu_runs=lambda wildcards: int(job(wildcards.job)["device"] == "cuda"),
    shell:
        "exec > {log} 2>&1; {JOB} train {HERE:q} {wildcards.job:q}"


checkpoint choose:
    input:
        lambda wildcards: ancient(trained(PLAN["reports"][wildcards.report]["needs"])),
    output:
        "chosen/{report}.json",
    log:
        "logs/choose-{report}.log",
    resources:
        gpu_runs=lambda wildcards: int(PLAN["reports"][wildcards.report]["device"] == "cuda"),
    shell:
        "exec > {log} 2>&1; {JOB} choose {HERE:q} {wildcards.report:q}"


rule report:
    input:
        lambda wildcards: ancient(needed(wildcards.report)),
    output:
        "made/{report}",
    log:
        "logs/{report}.log",
    priority: lambda wildcards: PLAN["reports"][wildcards.report]["seconds"]
    resources:
        gpu_runs=lambda wildcards: int(PLAN["reports"][wildcards.report]["device"] == "cuda"),
    shell:
        "exec > {log} 2>&1; {JOB} report {HERE:q} {wildcards.report:q}"
