"""Settings: what is read, from where, how fast, and where a fault is."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch import settings
from relaunch.errors import SettingsError
from relaunch.session.facts import matches

EVERYTHING = """
[run]
reset = ["rm -rf data", ["rm", "-rf", "a b"]]
stop_if_reset_fails = false
clear = true
isolate = "frozen"
unsaved = "warn"
timeout_s = 90
[record]
max_file = "2 MiB"
max_new = "1 GB"
env = ["CUDA_*"]
redact = ["MY_*"]
also = ["editable", "../lib"]
max_output = 4096
[warm]
memory = "30%"
idle = "2h"
[metrics]
loss = 'loss (\\S+)'
[sets]
conf = "conf@*"
flag = "MODE"
"""


@pytest.fixture(autouse=True)
def config_home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config/relaunch").mkdir(parents=True)
    return tmp_path / "config/relaunch/config.toml"


@pytest.fixture
def project(tmp_path, monkeypatch):
    top = tmp_path / "project"
    (top / "cache").mkdir(parents=True)
    monkeypatch.chdir(top)
    return top


def load(project: Path) -> settings.Settings:
    return settings.load(str(project), cache_dir=str(project / "cache"))


def fault(project: Path, text: str, name: str = "relaunch.toml") -> str:
    (project / name).write_text(text)
    with pytest.raises(SettingsError) as caught:
        load(project)
    assert "\n" not in caught.value.message
    return caught.value.message


def old(path: Path) -> None:
    """Age a file past the moment in which it could change without a new time stamp."""
    deadline = time.monotonic() + 300
    while time.time_ns() - path.stat().st_ctime_ns < 2 * settings._SETTLED_NS:
        assert time.monotonic() < deadline
        os.sched_yield()


def test_without_a_file_everything_has_a_default_and_nothing_is_written(project):
    found = load(project)
    assert found == settings.Settings()
    assert found.record.max_file == 1 << 20
    assert found.run.unsaved == "ask"
    assert os.listdir(project / "cache") == []


def test_every_key_is_read(project):
    (project / "relaunch.toml").write_text(EVERYTHING)
    found = load(project)
    assert found.run == settings.RunSettings(
        reset=("rm -rf data", ("rm", "-rf", "a b")),
        stop_if_reset_fails=False,
        clear=True,
        isolate="frozen",
        unsaved="warn",
        timeout_s=90.0,
    )
    assert found.record.max_file == 2 << 20
    assert found.record.max_new == 10**9
    assert found.record.env == ("CUDA_*",)
    assert found.record.also == ("editable", "../lib")
    assert found.record.max_output == 4096
    assert found.warm == settings.WarmSettings(memory="30%", idle_s=7200.0)
    assert found.metrics == {"loss": r"loss (\S+)"}
    assert found.sets == {"conf": "conf@*"}
    assert found.flag == "MODE"


SECRETS = """
HF_TOKEN HUGGING_FACE_HUB_TOKEN HF_TOKEN_READ TOKEN GITHUB_TOKEN SLACK_BOT_TOKEN NPM_AUTH_TOKEN
OPENAI_API_KEY WANDB_API_KEY AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID API_KEY_2 API_KEYS KEY APIKEY
MYAPIKEY SSH_PRIVATE_KEY SSHKEY DJANGO_SECRET CLIENT_SECRET_JSON DB_PASSWORD PGPASSWORD SMTP_PASS
MYSQL_PWD PASSWORD_FILE KEY_PASSPHRASE ROOT_PASSWD GOOGLE_APPLICATION_CREDENTIALS S3_CREDS
REDISCLI_AUTH BASIC_AUTH AUTH OAUTH AUTHORIZATION PROXY_AUTHORIZATION HTTP_AUTH_HEADER
DOCKER_AUTH_CONFIG BEARER GITHUB_PAT AZURE_DEVOPS_EXT_PAT SLURM_JWT
"""
HARMLESS = """
GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL AUTHOR AUTHORS SSH_AUTH_SOCK XAUTHORITY KEYBOARD_LAYOUT
MONKEY MONKEYPATCH HOTKEYS KEYMAP KEYRING_BACKEND TURKEY TOKENIZERS_PARALLELISM MAX_TOKENS
TOKENIZER PATH PYTHONPATH PATTERN GIT_ASKPASS SSH_ASKPASS PWD OLDPWD PASSES BYPASS COMPASS
DATABASE_URL CUDA_VISIBLE_DEVICES PATIENCE
"""


@pytest.mark.parametrize("name", SECRETS.split())
def test_a_variable_named_like_a_secret_is_redacted(name):
    assert matches(name, settings.Settings().record.redact)


@pytest.mark.parametrize("name", HARMLESS.split())
def test_a_variable_that_only_sounds_like_a_secret_is_kept(name):
    assert not matches(name, settings.Settings().record.redact)


def test_redaction_can_only_be_widened(project):
    (project / "relaunch.toml").write_text('[record]\nredact = ["MY_*"]')
    assert {"*TOKEN", "*SECRET*", "MY_*"} <= set(load(project).record.redact)


def test_pyproject_is_read_when_it_has_our_table(project):
    (project / "pyproject.toml").write_text('[tool.relaunch.run]\nreset = "make clean"\n')
    assert load(project).run.reset == ("make clean",)


def test_relaunch_toml_wins_over_pyproject(project):
    (project / "pyproject.toml").write_text("[tool.relaunch.run]\nclear = true\n")
    (project / "relaunch.toml").write_text("[run]\ntimeout_s = 3\n")
    found = load(project).run
    assert (found.clear, found.timeout_s) == (False, 3.0)


def test_a_broken_pyproject_without_our_table_is_not_our_business(project):
    (project / "pyproject.toml").write_text("[project\nname=")
    assert load(project) == settings.Settings()


def test_the_project_lies_over_the_users_file_key_by_key(project, config_home):
    config_home.write_text('[run]\nclear = true\ntimeout_s = 5\n[metrics]\na = "a"\nb = "b"\n')
    (project / "relaunch.toml").write_text('[run]\ntimeout_s = 9\n[metrics]\nb = "c"\n')
    found = load(project)
    assert (found.run.clear, found.run.timeout_s) == (True, 9.0)
    assert found.metrics == {"a": "a", "b": "c"}
    assert found.files == (str(config_home), str(project / "relaunch.toml"))


def test_the_parsed_copy_gives_the_same_answer_as_the_file(project):
    (project / "relaunch.toml").write_text(EVERYTHING)
    old(project / "relaunch.toml")
    first = load(project)
    assert (project / "cache/settings.json").exists()
    assert load(project) == first


def test_a_change_of_the_same_size_is_seen(project):
    path = project / "relaunch.toml"
    path.write_text("[run]\ntimeout_s = 1\n")
    old(path)
    assert load(project).run.timeout_s == 1
    path.write_text("[run]\ntimeout_s = 2\n")
    assert load(project).run.timeout_s == 2


def test_a_file_written_this_instant_is_not_trusted_to_stay(project):
    (project / "relaunch.toml").write_text("[run]\ntimeout_s = 1\n")
    load(project)
    assert not (project / "cache/settings.json").exists()


@pytest.mark.parametrize("rubbish", ["", "{", "[]", '{"form": 1}', "null"])
def test_a_spoilt_copy_is_read_anew(project, rubbish):
    (project / "relaunch.toml").write_text("[run]\ntimeout_s = 1\n")
    (project / "cache/settings.json").write_text(rubbish)
    assert load(project).run.timeout_s == 1


def test_a_copy_that_cannot_be_written_costs_only_time(project):
    (project / "relaunch.toml").write_text("[run]\ntimeout_s = 1\n")
    old(project / "relaunch.toml")
    assert settings.load(str(project), cache_dir="/proc/nowhere").run.timeout_s == 1


def test_the_warm_path_imports_no_parser_and_takes_under_a_millisecond(project):
    (project / "relaunch.toml").write_text(EVERYTHING)
    old(project / "relaunch.toml")
    load(project)
    script = (
        "import sys, time; from relaunch import settings\n"
        f"args = ({str(project)!r},), dict(cache_dir={str(project / 'cache')!r})\n"
        "times = []\n"
        "for _ in range(20):\n"
        "    start = time.thread_time(); found = settings.load(*args[0], **args[1])\n"
        "    times.append(time.thread_time() - start)\n"
        "assert found.run.timeout_s == 90, found\n"
        "dear = {'tomllib', 're', 'json', 'typing', 'enum', 'dataclasses', 'pathlib'}\n"
        "print(sorted(dear & set(sys.modules)), min(times) < 0.001)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[] True\n", "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[run\n", "relaunch.toml:1:5: expected ']' at the end of a table declaration"),
        ("[run]\nreset = \n", "relaunch.toml:2:9: invalid value"),
        (
            '[run]\n# x\n  rset = "a"\n',
            "relaunch.toml:3:3: unknown key `run.rset`; did you mean `run.reset`?",
        ),
        ("run.rset = 1\n", "relaunch.toml:1:1: unknown key `run.rset`; did you mean `run.reset`?"),
        (
            "run = { clear = true, rset = 1 }\n",
            "relaunch.toml:1:23: unknown key `run.rset`; did you mean `run.reset`?",
        ),
        ("\n[rum]\n", "relaunch.toml:2:2: unknown key `rum`; did you mean `run`?"),
        (
            'timeout_s = 3\n[run]\nreset="a"',
            "relaunch.toml:1:1: unknown key `timeout_s`; did you mean `run.timeout_s`?",
        ),
        (
            '[record]\nx = """\nmax_file = 1\n"""\n',
            "relaunch.toml:2:1: unknown key `record.x`; "
            "known: record.max_file, record.max_new, record.env, record.redact, record.also, "
            "record.max_output",
        ),
        (
            '[run]\nunsaved = "maybe"\n',
            "relaunch.toml:2:1: `run.unsaved`: must be ask, warn, refuse or off, not `maybe`",
        ),
        (
            "[run]\nclear = 1\n",
            "relaunch.toml:2:1: `run.clear`: must be true or false, not 1",
        ),
        (
            "[run]\ntimeout_s = -1\n",
            "relaunch.toml:2:1: `run.timeout_s`: must be a number of seconds above 0, not -1",
        ),
        (
            '[record]\nmax_file = "1 XB"\n',
            'relaunch.toml:2:1: `record.max_file`: `1 XB` is no size; write it as "1 MiB"',
        ),
        (
            "[metrics]\nok = 'x'\nloss = '('\n",
            "relaunch.toml:3:1: `metrics.loss`: `(` is no regular expression: "
            "missing ), unterminated subpattern at position 0",
        ),
        (
            '[sets]\nconf = "conf"\n',
            'relaunch.toml:2:1: `sets.conf`: must be a pattern with one *, as "conf@*", not `conf`',
        ),
        ("run = 3\n", "relaunch.toml:1:1: `run` must be a table: [run]"),
        (
            "[run]\nreset = [[]]\n",
            "relaunch.toml:2:1: `run.reset`: [] is no command: a shell string or an argv list",
        ),
    ],
)
def test_a_fault_names_file_line_and_column(project, text, message):
    assert fault(project, text) == message


def test_a_fault_in_pyproject_is_found_under_its_long_header(project):
    text = '[tool.other]\nrset = 1\n\n[tool.relaunch.run]\nrset = "x"\n'
    assert fault(project, text, "pyproject.toml").startswith("pyproject.toml:5:1: unknown key")


def test_bytes_that_are_not_text_are_named_with_their_place(project):
    (project / "relaunch.toml").write_bytes(b"[run]\n# caf\xe9\n")
    with pytest.raises(SettingsError, match=r"relaunch\.toml:2:6: byte 0xe9 is not UTF-8"):
        load(project)


def test_a_file_that_cannot_be_read_is_one_line(project):
    (project / "relaunch.toml").mkdir()
    with pytest.raises(SettingsError, match=r"relaunch\.toml cannot be read: Is a directory"):
        load(project)


@pytest.mark.parametrize(
    ("text", "count"),
    [("1 MiB", 1 << 20), ("20MB", 20_000_000), ("1.5k", 1536), ("7", 7), (" 2 GiB ", 2 << 30)],
)
def test_sizes_are_read_with_their_unit(text, count):
    assert settings.size(text) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [("4G", 4 << 30), ("1 GiB", 1 << 30), (4096, 4096), ("30%", 300), (" 12.5 % ", 125)],
)
def test_memory_is_a_size_or_a_share(text, count):
    assert settings.memory_bytes(text, 1000) == count


@given(st.text(max_size=12) | st.floats().map(lambda value: f"{value}%"))
def test_memory_is_a_number_or_a_value_error_of_ours(text):
    told = ""
    try:
        assert settings.memory_bytes(text, 1 << 40) >= 0
    except ValueError as error:
        told = str(error)
    assert not told or "is no memory" in told


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("memory = 0", "`0` is no memory"),
        ('memory = "0%"', "`0%` is no memory"),
        ('memory = "101%"', "`101%` is no memory"),
        ('memory = "inf%"', "`inf%` is no memory"),
        ("memory = 0.3", 'must be a size or a share such as "4G" or "30%", not 0.3'),
        ("memory = true", 'must be a size or a share such as "4G" or "30%", not true'),
        ('idle = "soon"', "`soon` is no time"),
        ('idle = "0h"', "`0h` is no time"),
        ("idle = -1", "must be a number of seconds above 0, not -1"),
    ],
)
def test_what_snapshots_cannot_be_allowed_is_said_with_its_place(project, line, what):
    key = line.partition(" ")[0]
    text = fault(project, f"[run]\nclear = true\n[warm]\n  {line}\n")
    assert text.startswith(f"relaunch.toml:4:3: `warm.{key}`: {what}")


def test_one_of_both_allowances_leaves_the_other(project, config_home):
    config_home.write_text('[warm]\nmemory = "4G"\nidle = 90\n')
    (project / "relaunch.toml").write_text('[warm]\nidle = "30m"\n')
    assert load(project).warm == settings.WarmSettings(memory="4G", idle_s=1800.0)


@given(st.text(max_size=12))
def test_a_size_is_a_number_or_a_value_error_of_ours(text):
    told = ""
    try:
        assert settings.size(text) >= 0
    except ValueError as error:
        told = str(error)
    assert not told or "no size" in told


@given(st.text(alphabet="[]run=tesc.\"{}\n#'1 ", max_size=60))
def test_any_text_is_read_or_refused_in_one_line(text):
    told = ""
    try:
        settings.parse(text.encode(), "relaunch.toml")
    except SettingsError as error:
        told = error.message
    assert not told or told.startswith("relaunch.toml:")
