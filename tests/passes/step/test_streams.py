"""Seconds of a step on several streams: what waits, what is hidden, what is counted as which."""

from __future__ import annotations

import pytest

from autockpt.passes.step import MAIN, PassSeconds, StreamPass, StreamRecord, StreamWait, StreamWork, replay

SIDE = 1
ONE = {(0, False): PassSeconds(1.0), (0, True): PassSeconds(2.0, 0.5)}
FORWARD, BACKWARD = StreamPass(MAIN, 0, False), StreamPass(MAIN, 0, True)


def sent(seconds: float) -> StreamWork:
    return StreamWork(SIDE, seconds, communicates=True)


def test_on_one_stream_seconds_add_up() -> None:
    found = replay([FORWARD, StreamWork(MAIN, 0.25), BACKWARD], ONE)
    assert found.step == 3.75
    assert (found.compiled, found.operators, found.inside, found.outside) == (3.0, 0.25, 0.5, 0.0)
    assert found.exposed == pytest.approx(0.5)


def test_what_is_sent_beside_a_pass_takes_no_time_of_the_step() -> None:
    found = replay([sent(0.75), FORWARD], ONE)
    assert (found.step, found.outside, found.exposed) == (1.0, 0.75, 0.0)


def test_a_pass_waits_for_what_it_reads() -> None:
    found = replay([sent(0.75), StreamRecord(SIDE, 7), StreamWait(MAIN, 7), FORWARD], ONE)
    assert (found.step, found.exposed) == (1.75, 0.75)


def test_what_is_gathered_early_is_hidden_by_the_pass_before() -> None:
    gathered = [sent(0.75), StreamRecord(SIDE, 7), FORWARD, StreamWait(MAIN, 7), BACKWARD]
    assert replay(gathered, ONE).step == 3.5


def test_an_event_counts_as_it_was_when_it_was_waited_for() -> None:
    again = [sent(0.5), StreamRecord(SIDE, 7), StreamWait(MAIN, 7), sent(5.0), StreamRecord(SIDE, 7), FORWARD]
    assert replay(again, ONE).step == 5.5
    assert replay([*again, StreamWait(MAIN, 7), BACKWARD], ONE).step == 8.0


def test_a_step_ends_when_its_last_stream_has_ended() -> None:
    assert replay([FORWARD, sent(4.0)], ONE).step == 4.0


def test_an_event_that_nobody_recorded_has_happened() -> None:
    assert replay([StreamWait(MAIN, 3), FORWARD], ONE).step == 1.0
