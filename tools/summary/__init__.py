"""The summary of all reports: for the reader of a folder of reports, and for the reader of the repository."""
