"""The lock: one holder at a time; the second is notified, and waits; a holder that fails frees it."""

from threading import Event, Thread

import pytest

from lib.atomic_write import alone


def test_the_second_is_notified_once_and_comes_after_the_first(tmp_path):
    order, notified = [], Event()

    def second():
        with alone(tmp_path / "lock", notified.set):
            order.append("second")

    thread = Thread(target=second)
    with alone(tmp_path / "lock", lambda: order.append("notified though it was free")):
        thread.start()
        assert notified.wait(10)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]


def test_one_who_does_not_want_to_wait_raises_and_a_holder_that_fails_frees_the_lock(tmp_path):
    def refuse():
        raise BlockingIOError("held")

    with pytest.raises(ZeroDivisionError), alone(tmp_path / "lock", refuse):
        with pytest.raises(BlockingIOError, match="held"), alone(tmp_path / "lock", refuse):
            pytest.fail("two hold it at once")
        raise ZeroDivisionError
    with alone(tmp_path / "lock", refuse):
        pass
