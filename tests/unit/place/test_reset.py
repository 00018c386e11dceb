from pathlib import Path

from relaunch.proc.supervise import supervise
from relaunch.trial.place.reset import ResetResult, run_resets


def reset(tmp_path: Path, *steps: str | tuple[str, ...], keep_going: bool = False) -> ResetResult:
    def kept(when: float, stream: int, data: bytes) -> None:
        with (tmp_path / f"said{stream}").open("ab") as file:
            file.write(data)

    return run_resets(
        steps,
        cwd=str(tmp_path),
        env={"PATH": "/usr/bin:/bin"},
        keep_going=keep_going,
        supervise=supervise,
        chunk=kept,
        quiet=True,
    )


def test_steps_run_in_order_in_the_folder_with_their_output_passed_on(tmp_path: Path) -> None:
    done = reset(tmp_path, "mkdir data && echo one >> data/log", ("sh", "-c", "echo two >&2; pwd"))
    assert done.failed == ""
    assert [step.exit_code for step in done.steps] == [0, 0]
    assert (tmp_path / "data/log").read_text() == "one\n"
    assert (tmp_path / "said1").read_text() == f"{tmp_path}\n"
    assert (tmp_path / "said2").read_text() == "two\n"


def test_a_failing_step_stops_the_rest_and_is_named(tmp_path: Path) -> None:
    done = reset(tmp_path, "true", "exit 3", "touch reached")
    assert done.failed == "reset 2 of 3 failed: exit 3 from `exit 3`"
    assert len(done.steps) == 2
    assert not (tmp_path / "reached").exists()


def test_told_to_go_on_it_runs_the_rest_and_still_names_the_first(tmp_path: Path) -> None:
    done = reset(tmp_path, "exit 3", "kill -9 $$", "touch reached", keep_going=True)
    assert done.failed == "reset 1 of 3 failed: exit 3 from `exit 3`"
    assert [step.ok for step in done.steps] == [False, False, True]
    assert done.steps[1].signal == 9
    assert (tmp_path / "reached").exists()


def test_a_step_that_cannot_start_is_a_failed_step(tmp_path: Path) -> None:
    done = reset(tmp_path, ("no-such-program", "x"))
    assert done.failed.startswith("the reset did not start: ")
    assert done.steps[0].exit_code == 127
