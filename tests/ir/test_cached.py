"""A cached property: computed once, and without a lock that other objects or a fork wait for."""

import threading

from symgrad.ir.cached import cached_property


class Slow:
    def __init__(self, begun, go_on):
        self.begun, self.go_on, self.count = begun, go_on, 0

    @cached_property
    def value(self):
        """What takes time."""
        self.count += 1
        self.begun.set()
        assert self.go_on.wait(20)
        return object()


def test_it_is_computed_once():
    ready = threading.Event()
    ready.set()
    slow = Slow(threading.Event(), ready)
    assert slow.value is slow.value
    assert slow.count == 1
    assert Slow.value.__doc__ == "What takes time."


def test_an_object_does_not_wait_for_another():
    begun, go_on, ready = threading.Event(), threading.Event(), threading.Event()
    ready.set()
    first, second = Slow(begun, go_on), Slow(threading.Event(), ready)
    thread = threading.Thread(target=lambda: first.value)
    thread.start()
    try:
        assert begun.wait(20)
        read = threading.Thread(target=lambda: second.value, daemon=True)
        read.start()
        read.join(20)
        assert not read.is_alive()
    finally:
        go_on.set()
        thread.join()


def test_threads_at_once_get_one_value():
    begun, go_on = threading.Event(), threading.Event()
    slow, found = Slow(begun, go_on), []
    threads = [threading.Thread(target=lambda: found.append(slow.value)) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert begun.wait(20)
    go_on.set()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1
