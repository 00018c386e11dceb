"""What looks like a secret is found wherever it stands however it is cut; ordinary words stay."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.planted import NAMED, password, tokens

from relaunch.inside.secret_shapes import REDACTED, is_given, mask, mask_text
from relaunch.trial.redact import Redactor

PLACES = ("{}", "x={} y", "login with '{}'\n", '{{"v": "{}"}}', "2024 INFO a {}\nnext line\n")
ESCAPED = (
    '"failed:\\n{}"', '"failed:\\\\n{}"', "a\\t{}", "\x1b[32m{}\x1b[0m", "\x1b[1;31m\x1b[K{}\x1b[m",
    '"\\u001b[38;5;9m{}"', "a%3D{}%26b", "\\u003d{}", "b'\\x1b[0m{}'",
)  # fmt: skip
"""Before a token: what ends in a letter or a digit and is none of its word."""
AROUND = ("{}", "2024 INFO x {}\nnext", "{} # and more", "a\n{}\nb=1\n")
ROOT = Path(__file__).parents[3]


def _keep(got: list[bytes], _when: float, _stream: int, part: bytes) -> None:
    got.append(part)


def core(secret: str) -> str:
    """Return the middle of a secret, which is never to be seen; of a key block a line."""
    inner = secret.splitlines()[1] if "\n" in secret else secret
    return inner[len(inner) // 2 :]


@pytest.mark.parametrize("whose", tokens())
def test_a_token_with_a_known_beginning_is_found(whose):
    token = tokens()[whose]
    for place in PLACES:
        assert core(token) not in mask_text(place.format(token))
        assert REDACTED in mask_text(place.format(token))


@pytest.mark.parametrize("place", ESCAPED)
def test_a_token_is_found_behind_a_line_break_or_a_colour_of_a_text(place):
    for token in tokens().values():
        got: list[bytes] = []
        redactor = Redactor(partial(_keep, got), ())
        for number in range(4):  # a line that comes again is looked at in another way
            redactor.chunk(0.0, 1, (f"{number} " + place.format(token) + "\n").encode())
        data = place.format(token).encode()
        for at in range(0, len(data), 7):
            redactor.chunk(0.0, 1, data[at : at + 7])
        redactor.flush()
        assert core(token).encode() not in b"".join(got)


@pytest.mark.parametrize("line", NAMED)
def test_a_value_is_found_beside_a_name_that_says_so(line):
    for around in AROUND:
        secret = password()
        shown = mask_text(around.format(line.format(secret)))
        assert core(secret) not in shown
        assert mask_text(shown) == shown
        assert line.partition("{")[0].strip("+")[:6] in shown


@pytest.mark.parametrize(
    "line",
    [
        "password\t{}", "api_key                {}", "setenv STRIPE_API_KEY {}", "  password {}",
        "DB_PASSWORD=ab`{}", "DB_PASSWORD=ab'\"<{}", "DB_PASSWORD=7k(Q[{}",
        '{{"username":"u","key":"{}0123456789"}}', "+ wandb login --relogin {}",
    ],
)  # fmt: skip
def test_a_value_is_found_in_a_line_of_a_name_and_a_value(line):
    for around in ("{}", "a b\n{}\n\nc d\n"):
        secret = password() if "wandb" not in line else "0123456789abcdef" * 3
        text = around.format(line.format(secret[:40]))
        shown = mask_text(text)
        assert core(secret[:40]) not in shown
        assert mask_text(shown) == shown
        for size in (1, 5, 16):
            got: list[bytes] = []
            redactor = Redactor(partial(_keep, got), ())
            for at in range(0, len(text.encode()), size):
                redactor.chunk(0.0, 1, text.encode()[at : at + size])
            redactor.flush()
            assert core(secret[:40]).encode() not in b"".join(got)


def test_a_bot_is_found_in_the_address_that_it_is_called_by():
    token = tokens()["telegram"]
    assert core(token) not in mask_text(f"https://api.telegram.org/bot{token}/sendMessage")


def _behind_each(sign: str, block: str) -> str:
    return "\n".join(sign + line for line in block.split("\n"))


BLOCKS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "of a mail": lambda block: block.replace("RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"),
    "JSON": json.dumps,
    "JSON in JSON": lambda block: json.dumps(json.dumps({"key": block})),
    "ranks": partial(_behind_each, "[rank0]: "),
    "a log": partial(_behind_each, "2026-01-01 12:00:00,123 INFO [main] "),
    "a frame": partial(_behind_each, "\u2502 "),
    "a colour": partial(_behind_each, "\x1b[32m"),
    "a list": lambda block: repr(block.split("\n")),
    "a page": lambda block: block.replace("\n", "<br>"),
    "an address": quote,
    "cut off": lambda block: block.partition("-----END")[0],
}
"""How a block of a private key may be shown."""


@pytest.mark.parametrize("how", BLOCKS)
def test_a_block_of_a_key_is_found_with_something_beside_each_line(how):
    block = tokens()["key block"] * 2
    text = f"before\n{BLOCKS[how](block)}\n and after it.\n"
    for size in (9, 64, len(text)):
        got: list[bytes] = []
        redactor = Redactor(partial(_keep, got), ())
        for at in range(0, len(text.encode()), size):
            redactor.chunk(0.0, 1, text.encode()[at : at + size])
        redactor.flush()
        shown = b"".join(got).decode()
        assert not [line for line in block.split("\n") if len(line) == 64 and line[9:40] in shown]
        assert shown.startswith("before\n")
        assert shown.endswith("and after it.\n")


def test_a_text_about_blocks_of_keys_is_kept():
    text = "expected -----BEGIN PRIVATE KEY----- and -----END PRIVATE KEY-----, but got a path\n"
    assert mask_text(text) == text


def test_the_key_beside_the_id_of_an_amazon_account_goes_with_it():
    token, key = tokens()["aws id"], "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY"
    assert key[9:] not in mask_text(f"{token},{key}\n")


def test_a_long_value_is_found_whole():
    secret = "FwoGZXIvYXdzE" + "Ab1/Cd2+" * 200
    for line in ('"SessionToken": "{}"', "aws_session_token = {}", "AWS_SESSION_TOKEN='{}'"):
        for size in (64, 4000):
            got: list[bytes] = []
            redactor = Redactor(partial(_keep, got), ())
            data = f"{line.format(secret)}\n".encode()
            for at in range(0, len(data), size):
                redactor.chunk(0.0, 1, data[at : at + size])
            redactor.flush()
            assert b"Cd2" not in b"".join(got)


def test_a_key_that_begins_like_a_path_is_found_and_a_path_is_kept():
    key, path = "/8fK2mQ0/vL5xTz7Rb1NcW4yHd9Ge3JpSa6Uo/kM", "/home/User1/Projects/data/Key2"
    for name in ("aws_secret_access_key=", "--secret-access-key "):
        assert key[5:] not in mask_text(name + key)
        assert mask_text(name + path) == name + path
    assert is_given("--secret-access-key", key)
    assert not is_given("--secret-access-key", path)


def test_however_output_is_cut_a_secret_in_it_is_found():
    lines = [(token, f"got {token} now\n") for token in tokens().values()]
    lines += [(secret, line.format(secret) + "\n") for line in NAMED if (secret := password())]
    for secret, line in lines:
        data = line.encode()
        for cut in range(0, len(data), 1 if len(data) < 150 else 11):
            got: list[bytes] = []
            redactor = Redactor(partial(_keep, got), ())
            for part in (data[:cut], data[cut:]):
                redactor.chunk(0.0, 1, part)
            redactor.flush()
            assert core(secret).encode() not in b"".join(got), (cut, line)


def test_byte_by_byte_the_same_is_kept_as_in_one_piece_and_nothing_else_is_held_back():
    text = b"progress ......\rprogress 12.5%\rContinue? [y/n] tokens=5 --token abcdef12x\nend"
    got: list[bytes] = []
    redactor = Redactor(lambda _when, _stream, part: got.append(part), ())
    for at in range(len(text)):
        redactor.chunk(0.0, 1, text[at : at + 1])
        if text[at : at + 1] == b".":
            assert b"".join(got) == text[: at + 1]
    redactor.flush()
    assert b"".join(got) == mask(text) == text.replace(b"abcdef12x", REDACTED.encode())


def test_long_lines_of_names_without_values_are_read_quickly():
    read = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (10, 10))\n"
        "from relaunch.inside.secret_shapes import mask\n"
        "for one in ('password=', 'token=', 'password=(', 'password====', 'password%3D', 'sk-'):\n"
        "    mask(one.encode() * (200_000 // len(one)))\n"
    )  # of processor time; it takes about one second
    subprocess.run([sys.executable, "-c", read], check=True)


ORDINARY = """\
tokens/s=1234.5 max_tokens=512 num_tokens=1048576 pad_token=<pad> eos_token='</s>'
token_type_ids=[0]
tokenizer: gpt2-medium tokenizer_name=bert-base-uncased-v2 special_tokens_map={'pad_token': '[PAD]'}
next_token: 15043abcd bos_token_id=128000 author=somebody1234 monkey=banana12 key=value1234567890
keys=dict_keys(['a']) key=lambda row: row key: attention.query.weight cache_key=layer12_head4_abc
auth=basic authors: 12 people passed=12345 failed=3 compass=north pass 3 of 4, bypass=True
password: the user's password token: str secret: bytes | None = None password=None, token=token
def login(user, password=password, *, token=self.token): connect(password=get_password())
self.token = tokens[i] + tokens[i + 1]; secret = hashlib.sha256(data).hexdigest()
loss=0.1234 lr=1e-4 step=1200 commit 9fceb02d0ae598e95dc970b74767f19372d61af8
sha256:e3b0c44298fc1c14 https://example.org/path?page=2&key=a https://github.com/user/project ssh://git@example.org/x.git
Password: please enter it below. The access token is required. Authorization: required
ModuleList((0): Linear(in_features=4)) model.layers.12.self_attn.q_proj.weight torch.Size([4096])
sk-learn skipped; task-12345678901234567890; hf_hub_download(repo_id='x');
ghost_writer_of_everything
token="\u0120the12" "token": "\u2581hello12world" token: \u7cfb\u7edf\u63d0\u793a\u00b2
token='\u0441\u043e\u0442\u0440\u0443\u0434\u043d\u0438\u043a2'
API key: required. The session key was found; key: a1b2c3d4e5f6 set password hunter22 for them
access_key=s3_server['x'] access_key = s3_server['x']
token = sha256(data) password = base64.b64encode(raw) secret == other_secret secret -> str
reset password of user1234567890 the passwords differ: reset password now\n 'password=' + value
("password", "username"), ("api_key", "sha256") ["access_key", "secret_key1"]
"""


def test_ordinary_lines_of_programs_that_train_are_kept():
    for line in ORDINARY.splitlines():
        assert mask_text(line) == line


def test_of_ordinary_words_not_one_in_ten_thousand_is_taken_for_a_secret():
    library = Path(os.__file__).parent
    files = [*library.glob("[a-m]*.py"), *(ROOT / "docs").rglob("*.md")]
    files += (ROOT / "src/relaunch/session").glob("*.py")
    count = masked = 0
    for file in files:
        data = file.read_bytes()
        count += len(data.split())
        masked += mask(data).count(REDACTED.encode()) - data.count(REDACTED.encode())
    assert count > 200_000
    assert masked <= count / 10_000


@pytest.mark.parametrize(
    ("name", "value", "is_one"),
    [
        ("--password", "hunter", True), ("db.password", "x1y", True), ("--token", "abcdef12", True),
        ("--api-key", "abcdefgh", True), ("WANDB_API_KEY", "0a1b2c3d", True),
        ("--password-file", "/run/x", False), ("--password", "$PW", False),
        ("--token", "true", False), ("pad_token", "<pad>", False),
        ("stop_token", "END12345", False),
        ("--tokenizer", "gpt2-medium-12", False), ("--key", "abcdef123456", False),
        ("--use-auth-token", "true", False), ("--secret", "/run/secrets/x", False),
    ],
)  # fmt: skip
def test_what_an_option_gives_is_a_secret_or_not(name, value, is_one):
    assert is_given(name, value) == is_one
