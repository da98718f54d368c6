"""The lock: one holder at a time; the second is notified, and waits."""

from threading import Event, Thread

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
