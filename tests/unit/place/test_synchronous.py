"""What `--sync` sets: never over what a person set, under the names this torch knows."""

from relaunch.trial.place.synchronous import ALWAYS, synchronous, told, torch_version


def nothing(_path):
    return False


def test_what_is_set_already_stays():
    env = {"CUDA_LAUNCH_BLOCKING": "0", "OMP_NUM_THREADS": "8"}
    given = synchronous(env, exists=nothing)
    assert set(given) == set(ALWAYS) - set(env)
    assert told(given, env).endswith("; yours stay: CUDA_LAUNCH_BLOCKING=0 OMP_NUM_THREADS=8")


def test_a_former_name_that_is_set_stays_too():
    given = synchronous({"NCCL_BLOCKING_WAIT": "0"}, exists=nothing)
    assert "TORCH_NCCL_BLOCKING_WAIT" not in given
    assert given["TORCH_NCCL_ASYNC_ERROR_HANDLING"] == "0"


def test_torch_before_2_2_gets_the_names_it_knows_and_later_ones_no_warning():
    assert synchronous({}, torch=(2, 1), exists=nothing)["NCCL_BLOCKING_WAIT"] == "1"
    assert "NCCL_BLOCKING_WAIT" not in synchronous({}, torch=(2, 2), exists=nothing)
    assert "NCCL_BLOCKING_WAIT" not in synchronous({}, exists=nothing)


def test_other_devices_are_asked_only_where_they_are():
    given = synchronous({}, exists=lambda path: path == "/dev/kfd")
    assert given["HIP_LAUNCH_BLOCKING"] == "1"
    assert "ASCEND_LAUNCH_BLOCKING" not in given


def test_the_version_of_torch_is_read_from_a_folder(tmp_path):
    assert torch_version([str(tmp_path / "none"), str(tmp_path)]) is None
    (tmp_path / "torch-2.13.0+cpu.dist-info").mkdir()
    assert torch_version([str(tmp_path)]) == (2, 13)


def test_it_is_one_line():
    assert "\n" not in told(synchronous({}, exists=nothing), {})
    everything = dict(ALWAYS)
    assert told(synchronous(everything, exists=nothing), everything).startswith(
        "sync: all of it is set already"
    )
