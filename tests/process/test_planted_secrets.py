"""Some seventy secrets are planted in all that a program and a person can say: no file has one."""

import os
import re
import sys
import zlib
from pathlib import Path

import pytest
from tests.conftest import World
from tests.planted import NAMED, password, tokens

DETECTORS = (
    "AWSKeyDetector", "AzureStorageKeyDetector", "BasicAuthDetector", "GitHubTokenDetector",
    "GitLabTokenDetector", "JwtTokenDetector", "MailchimpDetector", "NpmDetector", "OpenAIDetector",
    "PrivateKeyDetector", "PypiTokenDetector", "SendGridDetector", "SlackDetector",
    "SquareOAuthDetector", "StripeDetector", "TelegramBotTokenDetector", "TwilioKeyDetector",
)  # fmt: skip
PROGRAM = """\
import logging, os, sys

with open(os.environ["SAID"]) as file:
    text = file.read()
half = text.index("\\n", len(text) // 2) + 1
for begin in range(0, half, 37):
    os.write(1, text[begin:min(begin + 37, half)].encode())
os.write(2, text[half:].encode())
line = next(one for one in text.splitlines() if one.startswith("db.password="))
api_key = line.partition("=")[2]
settings = {"auth": [{"password": api_key}], "url": f"pg://u:{api_key}@db/x", "words": sys.argv}
logging.getLogger("x").warning("token=%s", api_key)

def connect(settings):
    raise ConnectionError(f"cannot connect with {line}")

connect(settings)
"""


def core(secret: str) -> str:
    inner = secret.splitlines()[1] if "\n" in secret else secret
    return inner[len(inner) // 2 :]


def files(*folders: Path) -> dict[str, bytes]:
    """Return what files hold, and what they hold compressed."""
    found = {}
    for path in (path for folder in folders for path in folder.rglob("*") if path.is_file()):
        found[str(path)] = data = path.read_bytes()
        try:
            found[f"{path}, unpacked"] = zlib.decompress(data)
        except zlib.error:
            pass
    return found


def detected(text: str) -> set[str]:
    """Return the lines in which detect-secrets finds one."""
    pytest.importorskip("detect_secrets")
    from detect_secrets.core.scan import scan_line
    from detect_secrets.settings import transient_settings

    found = set()
    with transient_settings({"plugins_used": [{"name": name} for name in DETECTORS]}):
        for line in text.splitlines():
            if any(True for _ in scan_line(line)):
                found.add(line)
    return found


def test_no_planted_secret_is_in_any_file_of_the_journal(world: World) -> None:
    planted = [*tokens().values()]
    lines = [f"got {token}" for token in planted]
    for line in NAMED:
        planted.append(password())
        lines.append(line.format(planted[-1]))
    said = world.root / "tmp" / "said.txt"
    said.write_text("\n".join(lines) + "\n")
    command, reset, note, mark, url, shell, search = (password() for _ in range(7))
    planted += [command, reset, note, mark, url, shell, search]
    env = {"SAID": str(said), "DB_URL": f"postgres://u:{url}@db/x", "SLURM_JWT": tokens()["github"]}
    planted.append(env["SLURM_JWT"])
    assert len(planted) > 60

    world.write("train.py", PROGRAM)
    words = [
        "-m",
        f"with --token={note}",
        "--reset",
        f"echo --password {reset}",
        "--",
        sys.executable,
    ]
    ran = world.rl(
        *words, "train.py", f"--hf-token={command}", "-H", f"X-Api-Key: {command}", env=env
    )
    assert ran.returncode == 1
    for secret in (planted[0], reset):
        assert secret in ran.stdout + ran.stderr
    world.rl(
        "--",
        "sh",
        "-c",
        f"env DB_PASSWORD={shell} true; curl -u me:{shell} http://x.invalid; false",
    )
    world.rl("--", "env", f"API_TOKEN={shell}", "true", env={"BOTH": shell})
    world.rl(
        "repeat", "2", "--", "sh", "-c", f"echo --secret-key {search}; exit 1", "x", url, env=env
    )
    world.rl("mark", "1", "bad", f"it was password={mark}")
    for trial in (world.journal / "trials").iterdir():
        os.utime(trial, (1e9, 1e9))  # the index keeps none that may still change
    world.rl("log", "--verdict", "failed", "--all")
    index = next(world.home.rglob("*.sqlite"))
    assert index.stat().st_mode & 0o777 == 0o600

    kept = files(world.journal, world.home)
    leaked = {
        (name, secret)
        for name, data in kept.items()
        for secret in planted
        if core(secret).encode() in data
    }
    assert not leaked
    assert any("globals.pickle" in name for name in kept)
    assert any(b"<redacted>" in data for name, data in kept.items() if name.endswith("output.0"))

    assert len(detected(said.read_text())) >= 12
    texts = [data.decode(errors="replace") for name, data in kept.items() if b"\0" not in data]
    masked = re.compile(r"<redacted>|<[\w:-]*>\**")
    assert not detected(masked.sub("", "\n".join(texts)))
