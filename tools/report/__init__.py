"""Notebooks become reports: parameters checked, papermill run, one HTML page that needs no network."""
