"""Many reports at once: trainings and reports as jobs of Snakemake, on this machine or on a cluster."""
