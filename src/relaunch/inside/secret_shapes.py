"""Finds secrets in text by their shape and by the name beside them; pure, and quick without any.

Three things are looked for: tokens with a known beginning (`ghp_...`, key blocks, JSON web tokens),
passwords in addresses (`scheme://user:password@host`, `?token=...`), and values beside a name that
says so (`password=...`, `--api-key ...`, `"secret": "..."`, `Authorization: Bearer ...`). Programs
that train models speak of tokens all day: `max_tokens=512`, `pad_token=<pad>` are no secrets.

Searches in C find what most output has none of; `re` is imported at the first suspicion.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from re import Match, Pattern
    from typing import Any

REDACTED = "<redacted>"
_MASK = REDACTED.encode()

_UPPER, _LOWER = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz"
_IS_NAME = (
    b" " * 45 + b"w" + b" " * 2 + b"w" * 10 + b" " * 7 + b"w" * 26
    + b" " * 4 + b"w" + b" " + b"w" * 26 + b" " * 133
)  # fmt: skip
"""Letters, digits, `_` and `-` become `w`, all else a blank."""
_LONG = b"w" * 16
_RULE = b"-----"
_STEMS = (
    b"pass", b"pw", b"secret", b"token", b"key", b"auth", b"cred", b"bearer", b"cookie", b"jwt",
    b"://", b"sig=", b"wandb login",
)  # fmt: skip
_BEFORE, _NEAR, _AFTER = 80, 300, 4600
"""How far a name may reach back, and a value on: what begins like none is read no further."""
_SHORT = 4096
"""A text of this size is searched for all beginnings at once."""
_HELD = 8192
"""So much of a secret that has not ended yet is waited for."""
_BLOCK = 32768
"""The same for a block of a private key, which may have something beside each line."""

_HEX_DIGITS = b"0123456789abcdef \t\r\n\"'"
_PLAIN_BEGINNINGS = (
    b"A3T", b"AKIA", b"ASIA", b"ABIA", b"ACCA", b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_",
    b"github_pat_", b"glpat-", b"gldt-", b"glptt-", b"glrt-", b"glcbt-", b"glsoat-", b"glft-",
    b"glimt-", b"glagent-", b"gloas-", b"glffct-", b"glpsat-", b"xox", b"xapp-", b"hf_",
    b"api_org_", b"sk-", b"AIza", b"ya29.", b"GOCSPX-", b"1//0",
    b"k_live_", b"k_test_", b"k_prod_", b"whsec_",
    b"npm_", b"pypi-", b"dckr_", b"SG.", b":AA", b"dapi", b"dop_v1_", b"doo_v1_", b"dor_v1_",
    b"key-", b"sq0", b"EAAA", b"shpat_", b"shpca_", b"shppa_", b"shpss_", b"hvs.", b"hvb.", b"hvr.",
    b"lin_api_", b"PMAK-", b"r8_", b"gsk_", b"xai-", b"nvapi-", b"wandb_v", b"ATATT3", b"glsa_",
    b"figd_", b"LTAI", b"AGE-SECRET", b"tskey-", b"dp.pt.", b"dp.st.", b"dp.ct.", b"dp.sa.", b"eyJ",
    *(b"SK%x" % digit for digit in range(16)),
)  # fmt: skip
_PREFIXES = rb"""
    (?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])
    | gh[pousr]_[A-Za-z0-9]{16,} | github_pat_\w{20,}
    | gl(?:pat|dt|ptt|rt|cbt|soat|ft|imt|agent|oas|ffct|psat)-[\w.-]{16,}
    | xox[abceoprs]-[\w-]{10,} | xapp-[\w-]{16,}
    | (?:hf|api_org)_[A-Za-z0-9]{20,}
    | sk-(?:ant|proj|or|svcacct|admin|lf)-[\w-]{16,}
    | sk-(?=[\w-]{0,99}\d)(?=[\w-]{0,99}[A-Z])[\w-]{20,} | sk-[0-9a-f]{32,}
    | AIza[\w-]{30,} | ya29\.[\w-]{16,} | GOCSPX-[\w-]{20,} | 1//0[\w-]{30,}
    | (?:sk|rk|pk)_(?:live|test|prod)_[A-Za-z0-9]{10,} | whsec_[A-Za-z0-9+/=]{16,}
    | npm_[A-Za-z0-9]{30,} | pypi-[\w-]{16,} | dckr_(?:pat|oat)_[\w-]{16,}
    | SG\.[\w-]{16,}\.[\w-]{16,} | SK[0-9a-f]{32}(?![0-9a-f]) | (?:bot)?\d{8,10}:AA[\w-]{32,}
    | dapi[0-9a-f]{32}(?:-\d)? | do[opr]_v1_[0-9a-f]{32,} | key-[0-9a-f]{32}(?![0-9a-f])
    | sq0[a-z]{3}-[\w-]{22,} | EAAA[\w-]{40,} | shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}
    | hv[sbr]\.[\w-]{20,} | lin_api_\w{20,} | PMAK-[\w-]{20,} | r8_\w{30,} | gsk_\w{30,}
    | xai-[\w-]{30,} | nvapi-[\w-]{30,} | wandb_v\d_\w{20,} | ATATT3[\w=-]{20,} | glsa_\w{20,}
    | figd_[\w-]{20,} | LTAI[A-Za-z0-9]{16,} | AGE-SECRET-KEY-1[A-Z0-9]{20,} | tskey-[\w-]{16,}
    | dp\.(?:pt|st|ct|sa)\.[\w.]{30,}
    | eyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?
"""
_BEGINNINGS = rb"""(?:
    A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA|gh[pousr]_|github_pat_|gl[a-z]{2,5}-
    |xox[abceoprs]-|xapp-|hf_|api_org_|sk-|AIza|ya29\.
    |GOCSPX-|1//0|[srp]k_(?:live|test|prod)_|whsec_|npm_|pypi-|dckr_|SG\.|SK[0-9a-f]
    |(?:bot)?\d{8,10}:AA|dapi
    |do[opr]_v1_|key-[0-9a-f]{4}|sq0|EAAA|shp(?:at|ca|pa|ss)_|hv[sbr]\.|lin_api_|PMAK-|r8_|gsk_|xai-|nvapi-|wandb_v
    |ATATT3|glsa_|figd_|LTAI|AGE-SECRET|tskey-|dp\.|eyJ
)"""
_ESCAPE = rb"""(?:
    \\[nrtbfv0] | \\x[0-9A-Fa-f]{2} | \\u00[0-9A-Fa-f]{2} | %[0-9A-Fa-f]{2} | \[[0-9;]*[mK] | \(B
)"""
"""What ends in a letter or a digit and may stand before a token: a line break, a colour."""
_GAP = rb"(?:(?:\x1b|\\{1,4}(?:u001b|x1b))\[[0-9;:]*[mKG]|\*\*|[ \t]){0,60}"
"""Blanks and colours."""
_QUOTE = rb"""(?:\\{0,8}["']|`{1,2}|&quot;|&\#3[49];|\\u002[27]|%2[27])"""
_VALUE = rb"""
    (?:
        QUOTE?(?:,|,?\s{1,60})QUOTE?value QUOTE?[ \t]*[:=][ \t]*
      | QUOTE?\]?GAP
        (?:
            (?:=>|[=!]==?|[?+:]=|->|\xe2\x86\x92|:|=|\xef\xbc\x9a|%3D|%3A\+?)
            (?:[ \t]*(?:str|bytes|SecretStr|Optional\[str\]|str[ ]\|[ ]None)[ \t]*=)?
          | >
        )
        GAP(?:[|>][+-]?[ \t]*\r?\n[ \t]+)?(?:(?:!!?(?:str|binary)|&\w{1,30})[ \t]+)?
        (?:(?:Some|Ok|String|Secret\w{0,12})\((?=\w*[("'])){0,3}
        (?:\([bu]?["'][^"'\r\n]{0,80}["'],[ ](?=[bu]?["']))?
      | (?P<cell>[ \t]*(?:\||\xe2\x94[\x82\x83])[ \t]*)
      | (?P<apart>[ \t]{1,60})
      | (?P<listed>["'],[ \t]*(?=[bru]{0,2}["']))
    )
    (?:[bru]{0,2}(?P<sign>""\"|'''|`{1,2}|&quot;|&\#3[49];|\\u002[27]|%2[27])
        (?P<between>(?:(?!(?P=sign))\S)+)(?P=sign)
      |[bru]{0,2}(?P<quote>\\{0,8}["'])
        (?P<quoted>(?:(?!(?P=quote))(?:\\.|[^\s\\]))+(?=(?P=quote))|[^"'\r\n]{1,4096}?)
        (?:\\{0,8}["']|(?=[\r\n])|\Z)
      |(?!\\{1,4}(?:u001b|x1b)\[)(?P<bare>(?:
          [^\s"'`<>\x1b\\,;&]+ | (?!\\[nrt"']|[,;&][ \t]*[\w.-]+["']?[ \t]*[=:])[\\,;&]
        )+))
""".replace(b"GAP", _GAP).replace(b"QUOTE", _QUOTE)
_SCHEME = rb"(?:bearer|basic|token|digest|apikey|negotiate|aws4-hmac-sha256)[ \t]+"
_BLANK = rb"(?:[ +]|%20)"
_KEY_BEGIN = (
    rb"-----BEGIN"
    + _BLANK
    + rb"[A-Z0-9 +%]{0,40}PRIVATE"
    + _BLANK
    + rb"""KEY
    (?:(?:[ +]|%20)BLOCK)?-----"""
)
_KEY_END = rb"-----END" + _BLANK + rb"[A-Z0-9 +%]{0,60}-----"
_KEY_REST = rb"""(?:(?:[\r\n]|\\[nr])+[A-Za-z0-9+/=]{4,}(?=[\r\n\\"']|\Z))?"""
_KEY_LINE = rb"[A-Za-z0-9+/=]{32,}"
"""A line of a block. Something else may be before it, as who says it, or the sign of a list."""
_MOST_BETWEEN = 256
_QUERY = rb"""[?&;](?:
    [\w.-]{0,40}(?:token|secret|signature|password|passwd|api[_-]?key|credential|auth)
    |sig|pwd|pw|pass|key|code|access_key|subscription-key)=([^&\s"'<>#`\\]{6,})"""

_PASSWORDS = frozenset({"password", "passwd", "passphrase", "passwort", "pwd", "userpassword"})
_SECRETS = frozenset(
    {"secret", "secrets", "apikey", "secretkey", "accesskey", "privatekey", "authkey", "authtoken",
     "accesstoken", "accountkey", "sharedaccesskey", "clientsecret", "credential", "credentials",
     "authorization", "sessionkey", "passcode", "encryptionkey",
     "pgpassword", "secretaccesskey", "sshpass"}
)  # fmt: skip
_BEFORE_KEY = frozenset(
    {"api", "access", "secret", "auth", "private", "encryption", "wandb", "account", "shared",
     "storage", "signing", "master", "session", "service", "subscription", "ssh", "deploy", "app",
     "application", "openai", "anthropic", "hf", "stripe", "admin", "hmac", "license", "client",
     "crypt", "decryption", "kaggle", "comet", "neptune", "gpg", "jwt", "cookie", "webhook",
     "aes", "rsa", "fernet", "certificate", "cohere", "mistral", "azure", "aws", "gemini", "groq"}
)  # fmt: skip
_OF_ACCESS = frozenset(
    {"refresh", "bearer", "github", "gitlab", "slack", "personal", "security", "csrf", "git", "gh"}
)
_OF_TEXT = frozenset(
    {"pad", "eos", "bos", "unk", "sep", "cls", "mask", "image", "audio", "video", "special", "next",
     "prev", "previous", "last", "first", "stop", "start", "end", "per", "max", "min", "new", "num",
     "n", "tool", "begin", "additional", "prompt", "each", "every", "this", "current", "separator",
     "input", "output", "text", "target", "word", "vision", "decoder", "forced", "timestamp",
     "lang", "language", "unexpected", "invalid", "sub", "eot", "eod"}
)  # fmt: skip
"""Before `token`: one of a text."""
_AFTER_ALL = frozenset(
    {
        "value",
        "val",
        "raw",
        "plain",
        "b64",
        "base64",
        "header",
        "prod",
        "dev",
        "test",
        "staging",
        "base",
        "string",
        "str",
        "data",
        "new",
        "old",
        "read",
        "write",
        "confirmation",
        "hf",
        "openai",
    }
)
_NO_VALUES = frozenset(
    {"none", "null", "nil", "true", "false", "str", "bytes", "string", "int", "bool", "undefined",
     "required", "optional", "default", "empty", "hidden", "redacted", "masked", "example", "any",
     "changeme", "prompt", "stdin", "env", "self", "object", "dict", "list", "tuple", "function",
     "not", "unset", "missing", "lambda", "return", "type", "basic", "bearer", "digest", "auto",
     "dummy", "fake", "placeholder"}
)  # fmt: skip
_FILES = (
    ".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".txt", ".pem", ".key", ".crt",
    ".env", ".xml", ".p12", ".pub", ".gpg", ".enc", ".jks", ".pfx",
)  # fmt: skip
_STRONG, _LIKELY, _MAYBE = 3, 2, 1
_STEM_WORDS = ("pass", "pwd", "secret", "token", "key", "auth", "credential")


def mask(data: bytes) -> bytes:
    """Return the data with `<redacted>` where a secret stood."""
    found = spans(data)
    return cut(data, found) if found else data


def mask_text(text: str) -> str:
    """Return the text with `<redacted>` where a secret stood."""
    raw = text.encode("utf-8", "surrogatepass")
    found = spans(raw)
    return cut(raw, found).decode("utf-8", "surrogatepass") if found else text


def cut(data: bytes, found: Sequence[tuple[int, int]], begin: int = 0) -> bytes:
    """Return the data from `begin` on, with `<redacted>` instead of each stretch."""
    parts = []
    for first, end in found:
        if end > begin:
            parts += [data[begin : max(begin, first)], _MASK]
            begin = end
    return b"".join(parts) + data[begin:]


def spans(data: bytes) -> list[tuple[int, int]]:
    """Return where secrets are, in order, none within another."""
    names = data.translate(_IS_NAME)
    found: list[tuple[int, int]] = []
    at = names.find(_LONG)
    if at >= 0 and len(data) < _SHORT and not _may_begin(data):
        at = -1
    if at >= 0 and (b"\\" in data or b"%" in data or b"\x1b" in data):
        found += _behind_escapes(data)
    while at >= 0:
        end = names.find(b" ", at)
        end = len(data) if end < 0 else end
        found += _with_prefix(data, max(0, at - 16), end)
        at = names.find(_LONG, end)
    low = data.lower()
    for stem in _STEMS:
        at = low.find(stem)
        if at >= 0:
            found += _beside(stem, data, low, names, at)
    return _merged(found) if found else found


def in_pickle(data: bytes) -> Iterator[bytes]:
    """Yield what looks like a secret in pickled strings; their lengths stand right before them."""
    found = spans(data)
    if _may_begin(data):
        rules = _rules()
        for length in rules.length.finditer(data):
            if token := rules.prefix.match(data, length.end(), length.end() + 4096):
                found.append(token.span())
    for first, end in found:
        value = data[first:end]
        yield value[: next((at for at, c in enumerate(value) if c < 32 or c > 126), len(value))]


def has_anchor(text: bytes) -> bool:
    """Tell whether there is what a secret, or the beginning of one, has, in lines without digits.

    Where there is none, neither `spans` nor `pending` find anything, whatever the digits were.
    """
    low = text.lower().replace(b"tokens", b"t_s").replace(b"tokeni", b"t_i")  # no secrets
    if any(stem in low for stem in _STEMS) or b"curl " in low or b"-----BEGIN" in text:
        return True
    if b"//" in text:  # `1//0...`
        return True
    if not _bare_beginnings:
        for one in (one for one in _PLAIN_BEGINNINGS if b"/" not in one):
            bare = one.translate(None, b"0123456789")
            # Before most there is no letter and no digit.
            _bare_beginnings[bare] = (b"" if one[:1] in b":k" else b" ") + bare.translate(_BOUNDS)
    words = text
    if b"\\" in text or b"%" in text or b"\x1b" in text:
        for escape in _ESCAPES:
            words = words.replace(escape, b" " * len(escape))
    words = b" " + words.translate(_BOUNDS)
    for bare, begin in _bare_beginnings.items():
        at = words.find(begin)
        while at >= 0:
            if text.startswith(bare, at - len(bare) + len(begin) - 1):
                return True
            at = words.find(begin, at + 1)
    return False


_BOUNDS = b" " * 48 + b"0123456789" + b" " * 7 + _UPPER + b" " * 6 + _LOWER + b" " * 133
"""Letters, digits and `/` stay, all else becomes a blank."""
_bare_beginnings: dict[bytes, bytes] = {}
_ESCAPES = (
    *(b"\\" + bytes((one,)) for one in b"nrtbfav"), b"[m", b";m", b"[K", b"(B",
    *(opened + bytes((one,)) for opened in (b"%", b"\\x", b"\\u") for one in b"ABCDEFabcdef"),
    b"\\x", b"\\u",
)  # fmt: skip
"""What of an escape stands before a token, without its digits."""


def _merged(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for first, end in sorted(found):
        if kept and first < kept[-1][1]:
            kept[-1] = (kept[-1][0], max(end, kept[-1][1]))
        else:
            kept.append((first, end))
    return kept


def _with_prefix(data: bytes, first: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the tokens with a known beginning in a long word, which may go on behind dots."""
    if not data[first:end].strip(_HEX_DIGITS) or (
        _compiled is None and not _may_begin(data[first:end])
    ):
        return
    rules = _rules()
    while begun := rules.beginning.search(data, first, end):
        first = begun.start()
        token = rules.prefix.match(data, first, first + 4096)
        if token is None:
            first += 1
            continue
        yield token.span()
        first = token.end()
        if token[0][:1] == b"A" and (beside := rules.aws.match(data, first)):
            yield beside.span(1)


def _behind_escapes(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the tokens that follow a line break or a colour as a text has it: `\\nghp_...`."""
    if _compiled is None and not _may_begin(data):
        return
    rules = _rules()
    for escape in rules.escape.finditer(data):
        if token := rules.prefix.match(data, escape.end(), escape.end() + 4096):
            yield token.span()


def _may_begin(word: bytes) -> bool:
    """Tell whether a known beginning is in a word, without the patterns and their import."""
    for begin in _PLAIN_BEGINNINGS:  # noqa: SIM110 - a generator takes twice the time
        if begin in word:
            return True
    return False


def _beside(
    stem: bytes, data: bytes, low: bytes, names: bytes, at: int
) -> Iterator[tuple[int, int]]:
    """Yield the values beside names that have a word in them."""
    done = -1
    while at >= 0:
        if at >= done:
            if stem == b"://":
                yield from _in_address(data, low, at)
            elif stem == b"wandb login":
                yield from (one.span(1) for one in _rules().wandb.finditer(data, at, at + 200))
            elif stem == b"sig=":
                yield from _in_query(data, max(0, at - 1), _first_of(data, at, b" \t\r\n\"'<>`"))
            elif stem == b"token" and low[at + 5 : at + 6] in (b"s", b"i"):
                done = at + 6  # `tokens`, `tokenizer`
            else:
                end = names.find(b" ", at)
                end = len(data) if end < 0 else end
                done = end
                if stem == b"key" and _RULE in data[end - 5 : end + 14]:
                    yield from _key_block(data, at)
                elif data[end : end + 1] in _MAY_FOLLOW:
                    first = names.rfind(b" ", max(0, at - _BEFORE), at) + 1
                    for span in _named(stem, data, low, first or max(0, at - _BEFORE), end):
                        yield span
                        done = max(done, span[1])  # what is in a value names nothing
        at = low.find(stem, max(at + 1, done))


_MAY_FOLLOW = frozenset(bytes([c]) for c in b"=:\"'\\] \t>\x1b%&`*!?+\r\n\xe2\xef")
_SIGNS = (b"=", b":", b">", b"|", b"%3", b"\xe2", b"\xef")
"""One of them stands between a name and its value; `\xe2` begins arrows and frames of tables."""


def _in_address(data: bytes, low: bytes, at: int) -> Iterator[tuple[int, int]]:
    """Yield the password and the secret parameters of an address, and what curl is given for it."""
    end = at + 3
    line = low[max(low.rfind(b"\n", 0, at), at - 500, 0) : at + 500]
    if b"curl " in line and (b" -u" in line or b"user" in line):
        first = max(data.rfind(b"\n", 0, at), at - 500, 0)
        for one in _rules().curl.finditer(data, first, at + 500):
            yield one.span(1)
    blank = _first_of(data, end, b" \t\r\n\"'<>`")
    address = data[end:blank]
    if b"@" not in address and b"=" not in address and b"hook" not in address:
        return
    rules = _rules()
    if found := rules.userinfo.match(data, end, blank):
        group = 1 if found[1] else 2
        if _is_password(found[group].decode("latin-1"), group == 2):
            yield found.span(group)
    yield from _in_query(data, end, blank)
    if found := rules.hook.match(data, end, blank):
        yield found.span(1)


def _in_query(data: bytes, first: int, end: int) -> Iterator[tuple[int, int]]:
    for one in _rules().query.finditer(data, first, end):
        if _is_plausible(one[1].decode("latin-1"), _LIKELY):
            yield one.span(1)


def _is_password(text: str, is_user: bool) -> bool:
    if text[:1] in ("<", "$", "{", "*", "%", "["):
        return text[:1] == "%" and len(text) > 5
    return not is_user or (len(text) >= 12 and _is_mixed(text))


def _first_of(data: bytes, at: int, ends: bytes) -> int:
    window = data[at : at + 2048]
    return at + min((i for c in ends if (i := window.find(c)) >= 0), default=len(window))


def _key_block(data: bytes, at: int) -> Iterator[tuple[int, int]]:
    """Yield a block of a private key to its end; without one, as far as it goes on."""
    rules = _rules()
    begin = data.rfind(b"-----BEGIN", max(0, at - 60), at)
    if begin < 0 or not (head := rules.key_begin.match(data, begin)):
        return
    next_one = data.find(b"-----BEGIN", head.end(), head.end() + _BLOCK)
    until = next_one if next_one >= 0 else head.end() + _BLOCK
    if end := rules.key_end.search(data, head.end(), until):
        until = end.start()
    at = first = head.end()
    while line := rules.key_line.search(data, at, min(until, at + _MOST_BETWEEN + 1024)):
        if line.start() - at > _MOST_BETWEEN:
            break
        at = line.end()
    if at == first:  # a text about such blocks
        return
    if end and until - at <= _MOST_BETWEEN:
        yield begin, end.end()
    elif rest := rules.key_rest.match(data, at, until):
        yield begin, rest.end()


def _named(stem: bytes, data: bytes, low: bytes, first: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the value beside one name, which is the word between `first` and `end`."""
    if data[end : end + 1] == b">" and data[first - 1 : first] not in (b"<", b""):
        return  # no `<password>`
    name = _unescaped(data[first:end].decode("latin-1"), data[first - 1 : first])
    is_phrase = False
    if name.lower() == "key" and data[first - 2 : first - 1].isalnum() and data[first - 1] in b" .":
        # `API key: ...`, `fs.s3a.secret.key=...`
        before = data[max(0, first - 20) : first - 1].decode("latin-1").replace(".", " ").split()
        _, bracket, word = before[-1].replace(";", "[").rpartition("[")  # behind a colour
        if (_unescaped(word, b"[") if bracket else word).lower() in _BEFORE_KEY:
            is_phrase, name = data[first - 1 : first] == b" ", "api_key"
    elif name == "PWD" and data[first - 1 : first] in (b";", b"%"):  # `UID=...;PWD=...`
        name = "pwd"
    strength = _strengths.get(name)
    if strength is None:
        if len(_strengths) > _MOST_NAMES:
            _strengths.clear()
        strength = _strengths[name] = strength_of(name)
    if name == "key" and b"username" in low[max(0, first - _BEFORE) : first]:  # of Kaggle
        strength = _LIKELY
    if not strength:
        return
    is_option = name.startswith("--") or data[first - 1 : first] == b"-"
    if strength < _STRONG and not is_option and stem != b"bearer":
        follows = data[end : end + 64]
        if not any(sign in follows for sign in _SIGNS):
            return
    rules = _rules()
    if stem == b"bearer" and (token := rules.bearer.match(data, end)):
        yield token.span(1)
        return
    for near in (_NEAR, _AFTER):
        found = rules.value.match(data, end, min(len(data), end + near))
        span = _value_in(found, name, strength, first, low) if found else None
        if not (found and span and found.end() == end + near):  # it does not go on
            break
    if span and not (is_phrase and not _is_mixed(data[span[0] : span[1]].decode("latin-1"))):
        yield span


def _value_in(
    found: Match[bytes], name: str, strength: int, first: int, low: bytes
) -> tuple[int, int] | None:
    """Return where the value of a name is, if it is one."""
    data, end = found.string, found.start()
    group = next(one for one in ("bare", "quoted", "between") if found[one])
    value, where = found[group], found.start(group)
    text = value.decode("latin-1")
    separator = data[end:where]
    low_name = name.lower()
    is_option = name.startswith("--") or data[first - 1 : first] == b"-"
    is_header = low_name.endswith("authorization") or (
        low_name.endswith("auth") and b":" in separator
    )
    if is_header and (scheme := _rules().scheme.match(data, where)):
        rest = _rules().rest_of_line.match(data, scheme.end())
        return rest.span() if rest else None
    if found["apart"] and not is_option:
        is_netrc = low_name == "password" and b"login" in low[max(0, first - _BEFORE) : first]
        is_one = is_netrc or (strength == _STRONG and _is_alone(found, name, group, text))
        return (where, where + len(value)) if is_one else None
    if found["listed"] or found["cell"]:
        is_pair = b"(" in data[max(0, first - 3) : first] and len(value) >= 8
        if not is_option and found["listed"] and (strength < _STRONG or not is_pair):
            return None  # no `("x-api-key", "...")`
        if not (is_option and found["listed"]) and not _is_mixed(text):
            return None
    if group == "bare":
        is_of_env = separator == b"=" and data[first - 1 : first] in (b"", b"\n", b"\0")
        is_of_env = is_of_env and value[-1] not in b"(["
        if is_of_env and data[where + len(value) : where + len(value) + 1] in _IN_PASSWORDS:
            value = data[where : _first_of(data, where, b" \t\r\n\0\x1b")]
        value = value.rstrip(b",;:)}]")
        text = value.decode("latin-1")
        if not _is_literal(text, separator, data, where + len(value), is_option):
            return None
    elif group == "quoted" and text[:2] in (" +", " %", ", "):  # `"password=" + value`
        return None
    return (where, where + len(value)) if _is_plausible(text, strength) else None


_IN_PASSWORDS = frozenset(bytes([c]) for c in b"\"'`<>")


def _is_alone(found: Match[bytes], name: str, group: str, text: str) -> bool:
    """Tell whether a name and a value have a line for themselves, or are `PASSWORD '...'`."""
    if len(text) < 6 or not _is_mixed(text) or text[0] in "(<[{$" or "=" in text[:-2]:
        return False
    data, end = found.string, found.end()
    if group == "quoted":
        return name.lower() in _PASSWORDS and " " not in text
    line = data[max(0, found.start() - _BEFORE) : found.start()].rpartition(b"\n")[2]
    is_first = line.strip() == name.encode("latin-1")
    is_last = data[end : end + 8].lstrip(b" \t")[:1] in (b"", b"\r", b"\n", b"\x1b")
    return is_last and (is_first or "_" in name)


def _unescaped(name: str, before: bytes) -> str:
    """Return a name without what an escape before it adds: `\\napi_key`, `%26api_key`, a colour."""
    if before == b"\\" and name[0] in "nrtbfvxu":
        return name[{"x": 3, "u": 5}.get(name[0], 1) :]
    if before == b"%":
        return name[2:]
    if before in (b"[", b";"):  # `1mpassword`
        return name.lstrip("0123456789").removeprefix("m")
    return name


def _is_literal(text: str, separator: bytes, data: bytes, end: int, is_option: bool) -> bool:
    """Tell a value from an expression of a program and from the next word of a sentence."""
    plain = text.replace("_", "a").replace(".", "a").isalnum() and not _has_digit(text)
    called = text.partition("(")[0].partition("[")[0]
    is_call = called != text and (
        not called
        or text[-1] in "(["
        or (
            called.replace(".", "_").isidentifier()
            and ("." in called or not _has_digit(called.rstrip("0123456789")))
        )
    )
    if b":" in separator:
        after = data[end : end + 1]
        if after not in (b"", b"\r", b"\n", b",", b"}", b'"', b"'", b"\\", b";", b"<", b"\x1b"):
            return not plain and _is_mixed(text)
        return not is_call and not (plain and "." in text)
    if is_call:
        return False
    return not plain or is_option or (separator.strip() == separator and "." not in text)


def strength_of(name: str) -> int:
    """Tell how much a name says that its value is a secret: 0 is nothing."""
    if name in ("PWD", "OLDPWD"):  # where a shell is
        return 0
    words = _words_of(name)
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in _AFTER_ALL):
        words.pop()
    if not words:
        return 0
    last, before = words[-1].rstrip("0123456789") or words[-1], words[-2:-1]
    if last in _PASSWORDS or last in _SECRETS:
        return _STRONG
    if last in ("key", "keys"):
        return _STRONG if before and before[0] in _BEFORE_KEY else 0
    if last in ("token", "jwt"):
        if before and (before[0] in _OF_ACCESS or before[0] in _BEFORE_KEY):
            return _STRONG
        return 0 if before and before[0] in _OF_TEXT else _LIKELY
    if last in ("pw", "auth", "bearer", "cookie", "creds", "cred") or last.endswith("pass"):
        return _MAYBE
    for ending in ("password", "passwd", "secret", "apikey"):
        if last.endswith(ending):
            return _STRONG
    return _LIKELY if last.endswith("token") and last[:-5] not in _OF_TEXT else 0


def _words_of(name: str) -> list[str]:
    """Split `db.userPassword` and `HF-TOKEN` into words in lower case."""
    parts: list[str] = []
    before = ""
    for char, after in zip(name, f"{name[1:]} ", strict=False):
        if not char.isalnum():
            parts.append(" ")
        elif char.isupper() and (before.islower() or (before.isupper() and after.islower())):
            parts.append(" " + char)
        else:
            parts.append(char)
        before = char
    return "".join(parts).lower().split()


def is_secret(name: str, value: str) -> bool:
    """Tell whether the value that goes by this name is a secret."""
    strength = strength_of(name)
    return bool(strength) and _is_plausible(value, strength)


def is_given(name: str, value: str) -> bool:
    """Tell whether `NAME=value` or `--name value` of a command gives a secret: it is no code."""
    strength = strength_of(name)
    if strength == _STRONG:
        low = value.lower()
        is_stand_in = value[:1] in ("<", "$", "{") or low in _NO_VALUES
        is_path = value.startswith(("/", "./", "../", "@/")) or low.endswith(_FILES)
        return len(value) >= 3 and not is_stand_in and (not is_path or _is_drawn(value))
    if strength == _LIKELY and len(value) >= 6 and value.isalpha():
        return value.lower() not in _NO_VALUES and len(value) >= 10
    return bool(strength) and _is_plausible(value, strength)


def mask_all(value: Any) -> Any:
    """Return plain data without secrets in its texts, and beside names that say so."""
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, dict):
        return {
            mask_all(key): REDACTED
            if isinstance(key, str) and isinstance(one, str) and is_secret(key, one)
            else mask_all(one)
            for key, one in value.items()
        }
    if isinstance(value, (list, tuple)):
        before = ("", *(one if isinstance(one, str) else "" for one in value))
        return [
            REDACTED
            if name.startswith("-") and isinstance(item, str) and is_given(name, item)
            else mask_all(item)
            for name, item in zip(before, value, strict=False)
        ]
    return value


def _is_plausible(value: str, strength: int) -> bool:
    """Tell a secret from a placeholder, a word of a sentence, and a token of a text."""
    low = value.lower()
    if len(value) < 4 or value[:1] in ("<", "$", "{", "%", "[", "(", "&", "@", "#", "?"):
        return (
            len(value) >= 8 and value[:1] in "@#?&(%$" and value[1:2].isalnum() and _is_mixed(value)
        )
    if low in _NO_VALUES or len(set(value)) < 3 or "://" in value or low.endswith(_FILES):
        return False
    if value[:1] in "/~." or value[:2] in ("./", ".."):
        return strength == _STRONG and (
            (_is_mixed(value) and value.count("/") < 2) or _is_drawn(value)
        )
    if " " in value and (strength < _STRONG or value.count(" ") > 4):
        return False
    letters = value.replace("_", "").replace("-", "").replace(".", "").replace(" ", "")
    if letters.isalpha() and any(stem in low for stem in _STEM_WORDS):
        return False
    if strength == _STRONG:
        return not (value.replace(".", "").isdigit() and len(value) < 6)
    if not value.isascii():  # a token of a text, in Russian or Chinese
        return False
    if strength == _LIKELY:
        return len(value) >= 8 and _is_mixed(value)
    return len(value) >= 12 and _is_mixed(value)


def _is_mixed(value: str) -> bool:
    """Tell whether a word looks as if it was drawn: digits among letters, or both cases, long."""
    if _has_digit(value) and (value.upper() != value.lower() or any(map(str.isalpha, value))):
        return True
    is_both = value.lower() != value and value.upper() != value
    return is_both and len(value) >= 16 and value.isalpha()


def _has_digit(value: str) -> bool:
    """Tell it quickly, for values may be long and many."""
    if value.isascii():
        raw = value.encode()
        return raw.translate(None, b"0123456789") != raw
    return any(map(str.isdigit, value))


def _is_drawn(value: str) -> bool:
    """Tell a long key in base64 from a path: in it letters, capitals and digits are all mixed."""
    kinds = [c.isupper() + 2 * c.isdigit() for c in value if c not in "+/="]
    changes = sum(kinds[at] != kinds[at - 1] for at in range(1, len(kinds)))
    is_coded = value.isascii() and len(kinds) == sum(map(str.isalnum, value))
    return is_coded and len(kinds) >= 30 and changes >= 0.45 * len(kinds)


def pending(data: bytes) -> int:
    """Return how many bytes at the end may belong to a secret that goes on in the next block."""
    ends_line = data[-1:] == b"\n" and data[-3:].strip()[-1:] not in (b"|", b">", b"-", b"+")
    is_name = b"name" in data[-_BEFORE:].lower()
    if ends_line and not is_name and b"-----BEGIN" not in data[-_BLOCK:]:
        return 0
    if b"\n" in data[-_BEFORE:] and (folded := _rules().open_folded.search(data[-_BEFORE:])):
        return len(folded[0])
    window = data[-_BLOCK:]
    begin = window.rfind(b"-----BEGIN")
    if begin >= 0 and b"-----END" not in window[begin:]:
        block = _rules().open_block.match(window, begin)
        if block:
            return len(window) - begin if len(window) - begin < _BLOCK else 0
    line = data[-_HELD:].rpartition(b"\n")[2]
    if not line.strip():
        return 0
    names = line.translate(_IS_NAME)
    low = line.lower()
    is_suspicious = any(stem in low for stem in (*_STEMS, b"curl "))
    if not is_suspicious and names[-3:] != b"www" and b"." not in line[-3:]:
        return 0
    rules = _rules()
    first = len(line)
    for rule in (
        rules.open_value,
        rules.open_address,
        rules.open_token,
        rules.open_escaped,
        rules.open_curl,
    ):
        if found := rule.search(line):
            first = min(first, found.start(found.lastindex or 0))
    held = len(line) - first
    return held if held < _HELD - 64 else 0


class _Rules:
    """The compiled patterns."""

    def __init__(self) -> None:
        import re

        def compiled(pattern: bytes, flags: Any = 0) -> Pattern[bytes]:
            return re.compile(pattern, re.VERBOSE | flags)

        none = rb"(?<![A-Za-z0-9])"
        self.beginning = compiled(none + _BEGINNINGS)
        self.length = compiled(rb"[\x8cC][\x00-\xff](?=" + _BEGINNINGS + rb")")
        self.escape = compiled(_ESCAPE + rb"(?=" + _BEGINNINGS + rb")")
        self.prefix = compiled(_PREFIXES)
        self.aws = compiled(rb"[,:;\s\"'|]{1,4}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])")
        self.value = compiled(_VALUE, re.IGNORECASE)
        self.scheme = compiled(_SCHEME, re.IGNORECASE)
        self.rest_of_line = compiled(rb"[^\r\n\"'\\]+")
        self.bearer = compiled(rb"[ \t]+([\w.~+/=-]{16,})", re.IGNORECASE)
        self.key_begin = compiled(_KEY_BEGIN)
        self.key_end = compiled(_KEY_END)
        self.key_line = compiled(_KEY_LINE)
        self.key_rest = compiled(_KEY_REST)
        self.userinfo = compiled(rb"[^\s/:@?#]*:([^\s/?#]+|[^\s@]+)@|([^\s/:@?#]+)@")
        self.query = compiled(_QUERY, re.IGNORECASE)
        self.hook = compiled(
            rb"(?:hooks\.slack\.com/(?:services|workflows)|(?:ptb\.|canary\.)?discord(?:app)?\.com/api"
            rb"/webhooks|[\w.-]+\.webhook\.office\.com/webhookb2)/([\w/@.-]{16,})"
        )
        self.curl = compiled(
            rb"\s(?:-u[ \t]?|--(?:proxy-)?user(?:[ \t]+|=))[\"']?[^\s:\"']+:([^\s\"']+)"
        )
        self.wandb = compiled(rb"wandb[ ]login(?:[ ]--?[\w=:/.-]+)*[ ]([0-9a-f]{40})(?!\w)")
        self.open_block = compiled(
            rb"-----BEGIN(?:" + _BLANK + rb"[A-Z0-9 +%]{0,40}(?:PRIVATE|P)|\Z)"
        )
        names = rb"(?:pass|pw|secret|token(?![si])|key|auth|cred|bearer|cookie|jwt)[\w-]{0,40}"
        self.open_value = compiled(
            names
            + rb"(?:"
            + _QUOTE
            + rb"?\]?"
            + _GAP
            + rb"(?:[=!?+:-]?[=>]=?|:|\xe2\x86\x92|\xef\xbc\x9a|%3[AD]|\||\xe2\x94[\x82\x83])"
            + _GAP
            + rb"|[ \t]{1,60})(?:"
            + _SCHEME
            + rb")?((?:\\{0,8}(?P<q>\"\"\"|'''|[\"'])(?:\\.|(?!(?P=q))[^\r\n]){0,4096}"
            + rb"|[^\s\"']*))\Z",
            re.IGNORECASE,
        )
        self.open_folded = compiled(
            rb"(?:"
            + names
            + rb":[ \t]{0,8}[|>][+-]?[ \t]*\r?\n[ \t]*"
            + rb"|name[\"']?[:=][ \t]*[\"']?[\w.-]{0,40}"
            + names
            + rb"[\"']?,?[ \t]*\r?\n[ \t]*[\"']?(?:value[\"']?:[ \t]*)?)\S*\Z",
            re.IGNORECASE,
        )
        self.open_curl = compiled(
            rb"curl[^\n]{0,300}?\s(?:-u[ \t]?|--(?:proxy-)?user[ \t=]+)[\"']?[^\s:\"']+:"
            rb"([^\n]*)\Z|wandb[ ]login[^\n]{0,100}[ ]([0-9a-f]*)\Z"
        )
        self.open_address = compiled(rb"(?:://|[?&]sig=)([^\s\"'<>`]*)\Z")
        self.open_token = compiled(none + rb"(" + _BEGINNINGS + rb"[\w.:/+=-]*)\Z")
        self.open_escaped = compiled(_ESCAPE + rb"(" + _BEGINNINGS + rb"[\w.:/+=-]*)\Z")


def _rules() -> _Rules:
    global _compiled
    if _compiled is None:
        _compiled = _Rules()
    return _compiled


_compiled: _Rules | None = None
_MOST_NAMES = 1000
_strengths: dict[str, int] = {}
"""What was found out about names: the same ones come in every line."""
