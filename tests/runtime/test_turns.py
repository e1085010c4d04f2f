import itertools
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import onnx.parser
import pytest

import entrepot as ep
from entrepot.runtime import turns
from entrepot.runtime.turns import Turn, in_turn


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


def in_threads(*works):
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)


@pytest.fixture
def patient(monkeypatch):
    """Nothing happens because time has passed."""
    for name in ("AT_ONCE", "WHILE", "_LOOK", "_LOST"):
        monkeypatch.setattr(turns, name, 60.0)
    monkeypatch.setattr(turns, "_turn", Turn())
    return monkeypatch


def test_a_thread_that_comes_back_at_once_keeps_its_turn(patient):
    turn, order = turns._turn, []

    def work():
        for _ in range(50):
            turn.run(order.append, [threading.get_ident()])
            time.sleep(0.0001)  # lets the others try

    in_threads(*[work] * 4)
    assert len(order) == 200
    changes = sum(one != next_ for one, next_ in itertools.pairwise(order))
    assert changes <= 2 * 4 - 1  # the first run of each, which shows nothing yet, and the rest


def test_a_thread_that_does_other_things_hands_its_turn_over(patient):
    patient.setattr(turns, "AT_ONCE", 0.0)
    turn, inside = turns._turn, []

    def work():
        for _ in range(50):
            turn.run(lambda: (inside.append(1), time.sleep(0.0005), inside.append(-1)), [])

    in_threads(*[work] * 4)  # takes minutes if nobody is woken
    assert set(itertools.accumulate(inside)) == {0, 1}


def test_a_thread_that_ends_leaves_its_turn(patient):
    turn, waits = turns._turn, threading.Event()

    def first():
        for _ in range(3):
            turn.run(waits.wait, [0])
        waits.wait(20)
        time.sleep(0.05)

    def second():
        while turn._owner == 0:
            time.sleep(0.001)
        waits.set()
        turn.run(int, [])

    in_threads(first, second)


def test_nobody_waits_for_ever_for_a_thread_that_was_interrupted_in_between(monkeypatch):
    monkeypatch.setattr(turns, "_LOST", 0.05)
    monkeypatch.setattr(turns, "_LOOK", 0.01)
    turn, ended = Turn(), threading.Event()

    def interrupted():
        assert turn._take(eager=True)
        ended.wait(20)

    def other():
        while turn._owner == 0:
            time.sleep(0.001)
        assert turn.run(int, []) == 0
        ended.set()

    in_threads(interrupted, other)


def test_an_interpreter_that_used_a_session_ends_in_silence():
    script = (
        "from entrepot.runtime.turns import Turn, in_turn; run = in_turn(int, 10**6); print([run() for _ in range(9)])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == (str([0] * 9), "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_that_is_forked_during_a_turn_can_run(patient):
    held, done = threading.Event(), threading.Event()

    def hold():
        turns._turn.run(lambda: (held.set(), done.wait(20)), [])

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(20)
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        os._exit(turns._turn.run(int, []))
    status = os.waitpid(child, 0)[1]
    done.set()
    thread.join()
    assert status == 0
