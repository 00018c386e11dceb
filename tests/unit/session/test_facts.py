"""What is kept of the environment: allowed values, salted hashes of the rest, never a secret."""

import fnmatch
import json

from hypothesis import given
from hypothesis import strategies as st

from relaunch.session import facts

ALLOW = ("CUDA_*", "PATH", "HF_*")
REDACT = ("*TOKEN*", "*KEY*")


def kept(env, salt=b"s" * 32):
    return facts.environment(env, allow=ALLOW, redact=REDACT, salt=salt)


def test_allowed_values_are_kept_and_the_rest_is_hashed():
    found = kept({"CUDA_VISIBLE_DEVICES": "0", "HOME": "/home/ada"})
    assert found["values"] == {"CUDA_VISIBLE_DEVICES": "0"}
    assert list(found["hashes"]) == ["HOME"]


def test_a_secret_is_redacted_even_when_its_prefix_is_allowed():
    found = kept({"HF_TOKEN": "hf_abcdefgh", "my_api_key": "sk-12345678"})
    assert found["redacted"] == ["HF_TOKEN", "my_api_key"]
    assert "abcdefgh" not in json.dumps(found)
    assert "12345678" not in json.dumps(found)


def test_hashes_tell_change_but_not_across_journals():
    one, other = kept({"A": "1"}), kept({"A": "2"})
    assert one["hashes"]["A"] != other["hashes"]["A"]
    assert one["hashes"]["A"] != kept({"A": "1"}, salt=b"t" * 32)["hashes"]["A"]


def test_what_differs_between_terminals_is_no_part_of_the_identity():
    def same(env):
        return facts.environment_digest(env, salt=b"s" * 32)

    assert same({"A": "1", "SHLVL": "1", "TMUX_PANE": "%1"}) == same({"A": "1", "SHLVL": "3"})
    assert same({"A": "1"}) != same({"A": "2"})


@given(st.text("AB_", max_size=8), st.text("AB_*", min_size=1, max_size=6))
def test_patterns_mean_what_fnmatch_says(name, pattern):
    assert facts.matches(name, [pattern]) == fnmatch.fnmatchcase(name, pattern)


def test_the_salt_is_made_once_and_is_private(tmp_path):
    journal = str(tmp_path / "journal")
    salt = facts.journal_salt(journal)
    assert facts.journal_salt(journal) == salt
    assert (tmp_path / "journal" / "salt").stat().st_mode & 0o777 == 0o600


def test_packages_are_read_from_the_folder_and_kept_once(tmp_path):
    site = tmp_path / "site-packages"
    for name in ("torch-2.13.0.dist-info", "old_thing-1.0-py3.11.egg-info", "torch"):
        (site / name).mkdir(parents=True)
    digest = facts.packages(str(tmp_path / "journal"), [str(site)])
    text = (tmp_path / "journal" / "packages" / f"{digest}.json").read_text()
    assert json.loads(text) == {"old_thing": "1.0", "torch": "2.13.0"}
    assert facts.packages(str(tmp_path / "journal"), [str(tmp_path / "nowhere")]) == ""
