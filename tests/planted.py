"""Secrets to plant, each drawn anew from a seed and put together here: none of them is anyone's."""

import base64
import json
import random
import string

_DRAW = random.Random(20)
_LETTERS = string.ascii_letters + string.digits


def _drawn(size: int, letters: str = _LETTERS) -> str:
    body = "".join(_DRAW.choice(letters) for _ in range(size - 2))
    return f"{body}{_DRAW.choice(letters.strip(string.digits) or letters)}7"


_HEX = "0123456789abcdef"
_UPPER = string.ascii_uppercase + string.digits


def _coded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _web_token() -> str:
    return ".".join(
        (_coded({"alg": "HS256", "typ": "JWT"}), _coded({"sub": _drawn(9)}), _drawn(43))
    )


def _key_block() -> str:
    lines = "\n".join(_drawn(64) for _ in range(4))
    kind = "PRIVATE KEY"
    return f"-----BEGIN RSA {kind}-----\n{lines}\n-----END RSA {kind}-----"


def tokens() -> dict[str, str]:
    """Return tokens that are known by themselves, by whose they are."""
    return {
        "aws id": "AK" + "IA" + _drawn(16, _UPPER),
        "aws session id": "AS" + "IA" + _drawn(16, _UPPER),
        "github": "gh" + "p_" + _drawn(36),
        "github app": "gh" + "s_" + _drawn(36),
        "github fine": "github" + "_pat_" + _drawn(22) + "_" + _drawn(59),
        "gitlab": "gl" + "pat-" + _drawn(20),
        "gitlab runner": "gl" + "rt-" + _drawn(20),
        "slack": "xo" + "xb-" + _drawn(12, string.digits) + "-" + _drawn(24),
        "slack app": "xa" + "pp-1-" + _drawn(30),
        "hugging face": "h" + "f_" + _drawn(34),
        "openai": "s" + "k-" + _drawn(48),
        "openai project": "s" + "k-proj-" + _drawn(74),
        "anthropic": "s" + "k-ant-api03-" + _drawn(93),
        "wandb": "wandb" + "_v1_" + _drawn(40),
        "google": "AI" + "za" + _drawn(35),
        "google session": "ya" + "29." + _drawn(60),
        "stripe": "s" + "k_live_" + _drawn(24),
        "stripe restricted": "r" + "k_live_" + _drawn(24),
        "npm": "np" + "m_" + _drawn(36),
        "pypi": "py" + "pi-AgEIcHlwaS5vcmc" + _drawn(60),
        "sendgrid": "S" + "G." + _drawn(22) + "." + _drawn(43),
        "twilio": "S" + "K" + _drawn(32, _HEX).replace("7", "a"),
        "telegram": "71" + _drawn(8, string.digits) + ":A" + "A" + _drawn(33),
        "databricks": "da" + "pi" + _drawn(32, _HEX),
        "digitalocean": "do" + "p_v1_" + _drawn(64, _HEX),
        "square": "sq" + "0atp-" + _drawn(22),
        "shopify": "sh" + "pat_" + _drawn(32, _HEX),
        "mailgun": "ke" + "y-" + _drawn(32, _HEX),
        "docker": "dckr" + "_pat_" + _drawn(27),
        "vault": "hv" + "s." + _drawn(40),
        "json web token": _web_token(),
        "key block": _key_block(),
    }


def password() -> str:
    """Return what a person might choose."""
    return _drawn(5, string.ascii_lowercase) + "-" + _drawn(9)


NAMED = (
    "PASSWORD={}",
    "export DB_PASSWORD='{}'",
    "--password={}",
    "--api-key {}",
    "--hf_token={}",
    "db.password={}",
    "+trainer.logger.token={}",
    "password: {}",
    '{{"secret": "{}"}}',
    '{{\\"client_secret\\": \\"{}\\"}}',
    "{{'api_key': '{}', 'n': 1}}",
    "Config(user='u', passwd='{}')",
    "aws_secret_access_key = {}",
    "AccountKey={};EndpointSuffix=core",
    "host=db user=u password={} dbname=x",
    "Driver={{x}};Uid=u;Pwd={};",
    "postgres://u:{}@db.local/x",
    "redis://:{}@cache:6379/0",
    "https://{}@git.local/x.git",
    "https://x.local/a?user=1&token={}&b=2",
    "https://x.local/a?sv=1&sig={}",
    "https://x.local/a?X-Amz-Signature={}",
    "Authorization: Bearer {}",
    "curl -H 'Authorization: Basic {}' http://x",
    "curl -u user:{} http://x",
    "machine x.local login u password {}",
    "WANDB_API_KEY={}",
    "DD_API_KEY: {}",
    "PGPASSWORD={} psql -h x",
    "<password>{}</password>",
    "config: {{privateKey: {}}}",
    "token = '{}'",
    "session_token={}",
    "X-Api-Key: {}",
    "os.environ['ACCESS_KEY'] = '{}'",
    "password: >-\n  {}\n",
    "\x1b[1mpassword\x1b[0m=\x1b[32m'{}'\x1b[39m",
    "'api_key'\x1b[1m:\x1b[0m \x1b[38;5;214m{}\x1b[0m",
    "\u2502 api_key \u2502 {} \u2502",
    "| password | {} |",
    "next=https%3A%2F%2Fx.local%2F%3Ftoken%3D{}",
    '{{"name": "DB_PASSWORD", "value": "{}"}}',
    '"text: config:\\napi_key: {}\\nlr: 1"',
    "'text: a\\tprivate_key={}'",
    "x=1%26api_key%3D{}",
    "headers: [('x-api-key', '{}'), ('n', '1')]",
    'os.environ.setdefault("API_KEY", "{}")',
    "[(b'authorization', b'Basic {}')]",
    '"text: \\u001b[32mapi_key\\u001b[0m={}"',
    "API key: {}",
    "\x1b[1;32mSecret key\x1b[0m: {}",
    "api_key                                  = {}",
    "fs.s3a.secret.key={}",
    "AWSSecretKey={}",
    "COHERE_KEY={}",
    "SLURM_JWT={}",
    "DB_CREDS={}",
    "dbpass={}",
    "token_write={}",
    "client-key-data: {}",
    "DRIVER=x;UID=u;PWD={}",
    "password == '{}'",
    "PASSWORD += {}",
    "password -> {}",
    "password \u2192 {}",
    "**Password:** `{}`",
    'password = """{}"""',
    "password: !!str {}",
    'password: Some(Secret("{}"))',
    "auth=('user', '{}')",
    "&quot;password&quot;: &quot;{}&quot;",
    "%22password%22%3A+%22{}%22",
    "\\u0022password\\u0022: \\u0022{}\\u0022",
    "\x1b[38:5:9mpassword\x1b[0m:\x1b[K {}\x1b[K",
    '<property name="password" value="{}"/>',
    "- name: DB_PASSWORD\n  value: {}\n",
    "ALTER ROLE bob PASSWORD '{}';",
    "?sv=2022-11-02&sr=b&sig={}",
    '"password": "ab\\"{}"',
    'password="ab\'{}"',
)
"""Lines in which a password stands beside what says so."""
