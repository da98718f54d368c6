"""The summary of the kept results: README's answer, its picture, summary.md and summary.html."""
