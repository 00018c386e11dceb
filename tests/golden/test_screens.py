"""The screens of the journal's verbs at 80 columns: plain, coloured, on a terminal, as JSON."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys

import pytest

pytestmark = pytest.mark.usefixtures("past")

SCREENS = [
    ("log", "log"),
    ("log-all", "log --all --reverse"),
    ("log-last", "log -n 2"),
    ("log-failed", "log --verdict failed"),
    ("log-set", "log --set bf16"),
    ("log-text", "log --text 'lr trains'"),
    ("log-none", "log --text nowhere"),
    ("show", "show 1"),
    ("show-escapes", "show 3 --env --code"),
    ("show-running", "show"),
    ("show-unstarted", "show 7"),
    ("show-repeat", "show 2.2"),
    ("diff", "diff 1 2"),
    ("diff-stat", "diff 1 2 --stat"),
    ("diff-all", "diff 2 3"),
    ("diff-numbers", "diff 1 3"),
    ("mark", "mark 2 good"),
    ("gc", "gc --dry-run --older 1h"),
]
BAD_INPUT = [
    "show 5",
    "show 99",
    "show -20",
    "show nobody",
    "show lr-work",
    "show search/1",
    "show search/x",
    "diff 1 5",
    "mark 1 goood",
    "mark 1",
    "mark 1 --name 3",
    "mark 1 --name lr-works",
    "log -n 0",
    "log --since yesterday",
    "log --verdict fialed",
    "log --wat",
    "gc --older soon",
    "gc --keep-size much",
    "back 99",
    "back 1 --to .",
    "back 6 --to sub",
    "again 99",
]


def washed(text: str, world) -> str:
    """Take out what differs from one run to the next, keeping every width."""
    text = text.replace(str(world.project), "/project").replace(str(world.root), "/root")
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "2026-11-15 12:00:00", text)
    text = re.sub(r'("when": )[\d.]+', r"\1 0.0", text)
    text = re.sub(r'("(?:pid|started)": )\d+', r"\1 1", text)
    text = re.sub(r'("tree": )"\w+"', r'\1"TREE"', text)
    text = re.sub(r'("digest": )"[0-9a-f]{32,}"', r'\1"DIGEST"', text)
    text = text.replace(os.uname().nodename, "HOST")
    return re.sub(r"[\d.]+ (?:KiB|MiB|B) (would be|stay)", r"SOME \1", text)


def run(world, words: str, **env: str) -> str:
    done = world.shell(f"rl {words}", env=env)
    assert "Traceback (most recent call last):\n  File" not in done.stderr
    said = f"$ rl {words}\n{done.stdout}"
    if done.stderr:
        said += f"--- stderr\n{done.stderr}"
    return washed(said + (f"--- exit {done.returncode}\n" if done.returncode else ""), world)


@pytest.mark.parametrize(("name", "words"), SCREENS)
def test_a_piped_screen_is_as_kept_and_fits_80_columns(world, golden, name, words):
    text = run(world, words)
    assert "\x1b" not in text
    golden(f"screens/{name}.txt", text)
    if not name.startswith(("show", "diff")):  # commands stay whole, to be pasted
        from relaunch.cli.draw import columns_of

        assert [line for line in text.splitlines() if columns_of(line) > 80] == []


@pytest.mark.parametrize(("name", "words"), [s for s in SCREENS if s[0] in ("log", "show", "diff")])
def test_forced_colour_paints_the_same_text(world, golden, name, words):
    text = run(world, words, FORCE_COLOR="1")
    golden(f"screens/{name}.colour.txt", text)
    plain = run(world, words)
    assert re.sub(r"\x1b\[[\d;]*m", "", text) == plain
    assert run(world, words, FORCE_COLOR="1", NO_COLOR="1") == plain


WARM_SCREENS = [
    ("log-warm", "log -n 5"),
    ("show-warm", "show 10"),
    ("show-warm-cold", "show 9"),
    ("show-warm-verified", "show 10.2"),
    ("diff-warm", "diff 9 10.2"),
]


@pytest.mark.usefixtures("warm_past")
@pytest.mark.parametrize(("name", "words"), WARM_SCREENS)
def test_warm_trials_show_what_a_cold_run_would_have_taken(world, golden, name, words):
    text = run(world, words)
    golden(f"screens/{name}.txt", text)
    if name.startswith("log"):
        from relaunch.cli.draw import columns_of

        assert [line for line in text.splitlines() if columns_of(line) > 80] == []


SEARCH_SCREENS = [
    ("log-with-searches", "log"),
    ("log-with-searches-last", "log -n 3"),
    ("log-searches", "log --searches"),
    ("log-searches-reverse", "log --searches --all --reverse"),
    ("log-searches-command", "log --command steps --since 3h"),
    ("log-searches-set", "log --set bf16"),
    ("log-searches-interrupted", "log --verdict interrupted"),
    ("log-searches-signature", "log --searches --signature nan"),
    ("log-searches-none", "log --searches --text nowhere"),
    ("show-search", "show search/1"),
    ("show-search-grow", "show search/2"),
    ("show-search-sweep", "show search/3"),
    ("show-search-killed", "show search/4"),
    ("show-search-refused", "show search/-1"),
    ("gc-searches", "gc --dry-run --older 1h"),
]


@pytest.mark.usefixtures("searched_past")
@pytest.mark.parametrize(("name", "words"), SEARCH_SCREENS)
def test_searches_stand_between_the_trials_and_fit_80_columns(world, golden, name, words):
    text = run(world, words)
    golden(f"screens/{name}.txt", text)
    from relaunch.cli.draw import columns_of

    if not name.startswith("show"):
        assert [line for line in text.splitlines() if columns_of(line) > 80] == []


@pytest.mark.usefixtures("searched_past")
@pytest.mark.parametrize("words", ["log", "show search/1", "show search/3"])
def test_colour_is_all_that_colour_changes_of_searches(world, words):
    text = run(world, words, FORCE_COLOR="1")
    assert "\x1b[1msearch/1" in text or "\x1b[1msearch/3" in text
    assert re.sub(r"\x1b\[[\d;]*m", "", text) == run(world, words)


@pytest.mark.usefixtures("searched_past")
def test_json_has_searches_too(world, golden):
    import json

    found = json.loads(world.shell("rl log --json").stdout)
    assert [row["id"] for row in found["searches"]] == [f"search/{n}" for n in range(1, 6)]
    assert found["searches"][3]["next"] == "", "a newer one of its verb is gone on with"
    assert json.loads(world.shell("rl log --searches --json").stdout)["trials"] == []
    done = world.shell("rl show search/1 --json")
    assert json.loads(done.stdout)["schema"] == "relaunch/search/1"
    golden("json/search.json", washed(done.stdout, world))


@pytest.mark.usefixtures("searched_past")
def test_an_escape_in_a_kept_card_is_not_obeyed(world):
    path = world.journal / "searches/1/answer.json"
    path.write_text('{"card": ["\\u001b[31mred\\u001b[0m \\u001b]0;title\\u0007 \\u001b[2J"]}')
    coloured = world.shell("rl show search/1 --color always").stdout.splitlines()[-1]
    assert coloured == "\x1b[31mred\x1b[0m \\x1b]0;title\\x07 \\x1b[2J"
    assert world.shell("rl show search/1").stdout.splitlines()[-1] == coloured.replace(
        "\x1b[31m", ""
    ).replace("\x1b[0m", "")


@pytest.mark.usefixtures("searched_past")
def test_a_search_that_cannot_be_read_hides_no_other(world):
    (world.journal / "searches/2/start.json").write_text("{")
    done = world.shell("rl log --searches")
    assert done.returncode == 0
    assert "search/2 unreadable: " in done.stdout
    assert "search/3  " in done.stdout
    assert world.shell("rl show search/2").returncode == 2


@pytest.mark.usefixtures("warm_past")
def test_json_of_warm_trials_has_both_times(world):
    import json

    rows = json.loads(world.shell("rl log -n 3 --json").stdout)["trials"]
    assert [row["warm"] for row in rows] == [True, True, True]
    assert [row["cold"] for row in rows] == ["data.csv changed", "", ""]
    assert rows[0]["resumed"] is None
    assert rows[1]["resumed"]["at"] == "train.py:207"
    assert (rows[1]["duration_s"], rows[1]["resumed"]["saved_s"]) == (1.04, 312.0)
    shown = json.loads(world.shell("rl show 10.2 --json").stdout)
    assert shown["verified"] == {"against": "10.3", "difference": ""}


def test_a_locale_without_utf8_gets_ascii(world, golden):
    text = run(world, "log -n 7", LC_ALL="C") + run(world, "diff 1 2", LC_ALL="C")
    drawn = text.replace("日本語", "")
    assert drawn.isascii()
    golden("screens/ascii.txt", text)


def test_a_wide_terminal_shows_more(world, golden):
    golden("screens/log.120.txt", run(world, "log", COLUMNS="120"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("log", "log --json"),
        ("show", "show 1 --json"),
        ("diff", "diff 2 3 --json"),
        ("mark", "mark 1 bad again --json"),
        ("gc", "gc --older 1h --dry-run --json"),
        ("back", "back 1 --json"),
    ],
)
def test_json_names_its_schema(world, golden, name, words):
    import json

    done = world.shell(f"rl {words}")
    assert json.loads(done.stdout)["schema"] == f"relaunch/{name}/1"
    golden(f"json/{name}.json", washed(done.stdout, world))


def test_bad_input_gets_one_clear_line_and_exit_2(world, golden):
    texts = []
    for words in BAD_INPUT:
        done = world.shell(f"rl {words}")
        assert done.returncode == 2, words
        assert done.stdout == "", words
        assert done.stderr.count("\n") == 1, words
        texts.append(washed(f"$ rl {words}\n{done.stderr}", world))
    golden("screens/bad-input.txt", "".join(texts))


@pytest.mark.parametrize("env", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_on_a_terminal_of_80_columns_nothing_wraps(world, env):
    text = on_terminal(world, ["log"], env)
    assert ("\x1b[" in text) == (not env)
    assert "\x1b[31mescapes" not in text, "a note's own escapes are not obeyed"
    from relaunch.cli.draw import columns_of

    for line in re.sub(r"\x1b\[[\d;]*m", "", text).splitlines():
        assert columns_of(line) <= 80


def on_terminal(world, words: list[str], env: dict[str, str]) -> str:
    """Run rl with a terminal of 80x24 as its stdout."""
    import fcntl
    import struct
    import termios

    near, far = pty.openpty()
    fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "relaunch", *words],
        stdin=far,
        stdout=far,
        stderr=far,
        env={**world.env, **env},
        cwd=world.project,
        start_new_session=True,
    )
    os.close(far)
    said = b""
    while select.select([near], [], [], 300)[0]:
        try:
            block = os.read(near, 65536)
        except OSError:
            break
        if not block:
            break
        said += block
    os.close(near)
    assert process.wait(300) == 0
    return said.decode()
