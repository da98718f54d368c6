"""Many reports at once: every training and every report is a job of Snakemake, on this machine or on a cluster."""
