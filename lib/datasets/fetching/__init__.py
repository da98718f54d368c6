"""Official downloads: where each dataset is published, how it gets here, and how it becomes what the loaders read.

registry     the addresses, checksums and licences of everything that can be fetched
download     one file, over connections that break
obtaining    the archive of a source: put there by hand, or from the first address that gives it
archives     unpacking what may be hostile
preparing    official files into the loaders' form: from_texts, from_questions, from_vectors
placing      all of that for one source, whole or not at all
command      fetch, list and verify
"""
