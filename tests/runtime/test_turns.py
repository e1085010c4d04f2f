import os
import threading
import time

import numpy as np
import onnx.parser
import pytest

import entrepot as ep
from entrepot.runtime import turns
from entrepot.runtime.turns import in_turn


class Watched:
    """A function that notes how many are in it at once; ``work`` is done on this processor."""

    def __init__(self, work):
        self.work, self.inside, self.most = work, 0, 0
        self._lock = threading.Lock()

    def __call__(self):
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        self.work()
        time.sleep(0.0005)  # lets the others in
        with self._lock:
            self.inside -= 1


def busy():
    end = time.thread_time() + 0.002
    while time.thread_time() < end:
        pass


def at_once(function, callers=4, runs=20):
    threads = [threading.Thread(target=lambda: [function() for _ in range(runs)]) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(("work", "nodes", "together"), [(lambda: None, 100, False), (busy, 1, True)])
def test_short_runs_take_turns_and_long_ones_do_not(work, nodes, together):
    watched = Watched(work)
    run = in_turn(watched, nodes)
    for _ in range(turns._FIRST + 1):
        run()
    watched.most = 0
    at_once(run, runs=20)
    assert (watched.most > 1) == together


def test_a_run_may_start_another_and_errors_end_its_turn():
    inner = in_turn(lambda: 7, 10**6)

    def outer():
        if inner() != 7:
            raise AssertionError
        raise ValueError("on purpose")

    run = in_turn(outer, 10**6)
    for _ in range(10):
        inner()
        with pytest.raises(ValueError, match="on purpose"):
            run()
    at_once(inner)


def test_many_callers_of_one_session_get_their_own_results():
    proto = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y) { h = Abs(x) y = Add(h, h) }'
    )
    session = ep.Session(proto)
    wrong = []

    def check(number):
        x = np.full(2, number, np.float32)
        wrong.extend(number for _ in range(200) if session.run({"x": x})["y"].tolist() != [2 * number] * 2)

    threads = [threading.Thread(target=check, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_that_is_forked_during_a_turn_can_run():
    held, done = threading.Event(), threading.Event()

    def hold():
        with turns._turn:
            held.set()
            done.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(20)
    child = os.fork()
    if child == 0:
        free = turns._turn.acquire(timeout=5)
        os._exit(0 if free else 1)
    status = os.waitpid(child, 0)[1]
    done.set()
    thread.join()
    assert status == 0
