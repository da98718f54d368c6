"""Commands around the library: reports, sweeps of reports, downloads, the summary. Notebooks never import them."""
