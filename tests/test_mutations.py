"""The list of faults that the suite must catch stays true to the code; `make mutations` plants them."""

import pytest
from mutations import PROJECT, read


@pytest.mark.parametrize("mutation", read(), ids=lambda one: one.new.strip()[:40])
def test_a_fault_can_be_planted(mutation):
    code, mutations = (PROJECT / mutation.file).read_text(encoding="utf-8"), read()
    assert len(mutations) >= 40 and code.count(mutation.old) == 1 and mutation.old != mutation.new
    assert all((PROJECT / "tests" / name).exists() for name in mutation.tests.split())
