"""What a resumed program reads from the clocks that count what it has used."""

import pytest
from tests.needs import PYTHONS

PROGRAM = """\
import os, time
def used():
    return [time.process_time(), time.thread_time(), sum(os.times()[:2])]
def work():
    until = time.process_time() + 0.3
    while time.process_time() < until:
        pass
began = used()
work()
print("one")
print("two")
import resource
usage = resource.getrusage(resource.RUSAGE_SELF)
print(usage.ru_utime + usage.ru_stime > 0.1)
print([now - then > 0.1 for now, then in zip(used(), began)])
"""
LINE = 10


@pytest.mark.parametrize("python", sorted(PYTHONS))
def test_cpu_clocks_do_not_go_back_at_a_snapshot_nor_at_one_of_a_resumed_run(warm, python):
    warm.write("train.py", PROGRAM)
    run = warm.rl("warm", "--at", f"train.py:{LINE}", "--", PYTHONS[python], "train.py")
    assert run.stdout == "one\ntwo\nTrue\n[True, True, True]\n"
    for at, word in ((LINE, "one"), (LINE + 1, "two")):
        edited = (warm.project / "train.py").read_text().replace(word, "new")
        warm.write("train.py", edited)
        again = warm.rl("warm", "--at", f"train.py:{LINE + 1}")
        assert f"rl: resumed at train.py:{at} " in again.stderr
        assert again.stdout.endswith("\nTrue\n[True, True, True]\n")
