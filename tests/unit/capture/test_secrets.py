"""Secrets in pickles: gone, at no cost to the pickle."""

import pickle
from collections import deque, namedtuple
from dataclasses import dataclass
from enum import Enum
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.planted import password, tokens

from relaunch.inside.capture.secrets import Secrets, is_secret
from relaunch.inside.secret_shapes import REDACTED

secrets = st.text(st.characters(codec="utf-8", exclude_characters="<>*"), min_size=8, max_size=40)


@given(secrets, st.text(max_size=20), st.text(max_size=20))
@example("0" * 8, "0" * 8, "0" * 32)  # "0" is also the byte that tells a length of 48
def test_a_secret_is_gone_and_the_pickle_still_loads(secret, before, after):
    found = Secrets({"TOKEN": secret}, ["TOKEN"])
    value = {"key": [secret, before + secret + after, 5]}
    data = pickle.dumps(value)
    hidden = found.hide(data)
    assert len(hidden) == len(data)
    loaded = pickle.loads(hidden)
    assert not any(secret in text for text in loaded["key"][:2])
    assert loaded["key"][2] == 5
    assert [*found.table.values()] == ["TOKEN"]
    for word in found.table:
        hidden = hidden.replace(word.encode(), secret.encode())
    assert pickle.loads(hidden) == value


def test_short_secrets_go_only_where_they_are_whole_strings():
    found = Secrets({}, [])
    found.look_at({"password": "abcd", "text": "abcdefgh"})
    loaded = pickle.loads(found.hide(pickle.dumps(["abcd", "abcdefgh"])))
    assert loaded == ["<pas", "abcdefgh"]


def test_names_tell_a_secret_and_ambiguous_ones_need_more():
    assert is_secret("password", "hunter2")
    assert is_secret("client_secret", "hunter2")
    assert is_secret("_api_key", "1234567")
    assert not is_secret("password", "abc")
    assert not is_secret("token", "hello")
    assert not is_secret("token", "a sentence with many words")
    assert is_secret("token", "ghp_0123456789abcdef")
    assert not is_secret("tokenizer", "ghp_0123456789abcdef")
    assert not is_secret("key", "name")


def test_secrets_are_found_inside_objects_and_dictionaries():
    class Client:
        def __init__(self):
            self.settings = {"auth": [{"api-key": "0123456789"}]}

    found = Secrets({}, [])
    found.look_at({"client": Client()})
    assert b"0123456789" not in found.hide(pickle.dumps("x 0123456789 y"))
    assert found.hide_texts({"a": ["0123456789"]}) == {"a": ["<api-key>"]}


def test_two_secrets_have_two_words():
    found = Secrets({"MY_LONG_NAME_1": "aaaaaaaa", "MY_LONG_NAME_2": "bbbbbbbb"},
                    ["MY_LONG_NAME_1", "MY_LONG_NAME_2"])  # fmt: skip
    first, second = pickle.loads(found.hide(pickle.dumps(["aaaaaaaa", "bbbbbbbb"])))
    assert first != second
    assert {*found.table} == {first, second}


def test_secrets_are_found_in_every_pickle_of_several():
    found = Secrets({"TOKEN": "0123456789"}, ["TOKEN"])
    data = (
        pickle.dumps(["first"]) + pickle.dumps({"v": "x 0123456789 y"}) + pickle.dumps("0123456789")
    )
    assert b"0123456789" not in found.hide(data)
    assert len(found.hide(data)) == len(data)


def test_what_looks_like_a_secret_is_one_whatever_its_name():
    values = {
        "url": "postgres://u:hunter2-hunter2@db/x",
        "raw": b"gh" + b"p_0123456789abcdefghij0123456789abcdef",
        "argv": ["train.py", "--api-key", "abcdefgh12345"],
        "words": ["tokenizer", "gpt2-medium-0123456789"],
    }
    found = Secrets({}, [])
    found.look_at(values)
    hidden = found.hide(pickle.dumps(values))
    for secret in (b"hunter2-hunter2", b"0123456789abcdefghij", b"abcdefgh12345"):
        assert secret not in hidden
    assert b"gpt2-medium-0123456789" in hidden
    assert pickle.loads(hidden).keys() == values.keys()


def test_what_looks_like_a_secret_is_found_wherever_it_lies_in_a_pickle():
    drawn = [token for whose, token in tokens().items() if "block" not in whose]
    deep: object = drawn[0]
    for _ in range(30):
        deep = [deep]
    values = [deep, {drawn[1]: 1}, {drawn[2]}, deque(drawn[3:5]), bytearray(drawn[5].encode())]
    values += [f"{'x' * 150_000} {drawn[6]}", f"password={drawn[7][-20:]}", *drawn[8:]]
    data = pickle.dumps(values)
    found = Secrets({}, [])
    found.look_in_pickle(data)
    hidden = found.hide(data)
    assert not [one for one in drawn if one[-16:].encode() in hidden]
    assert len(pickle.loads(hidden)) == len(values)


def test_secrets_are_found_by_their_names_in_objects_of_every_kind():
    @dataclass(slots=True)
    class Slotted:
        password: str

    Login = namedtuple("Login", "user password")
    secrets = [password() for _ in range(6)]
    deep: object = {"password": secrets[5]}
    for _ in range(5):
        deep = {"a": deep}
    values = {
        "a": Slotted(secrets[0]),
        "b": Login("u", secrets[1]),
        "c": [("X-Api-Key", secrets[2]), ("password", "username")],
        "d": {"password": [secrets[3]], "secret": bytearray(secrets[4].encode())},
        "e": deep,
    }
    found = Secrets({}, [])
    found.look_at(values)
    hidden = found.hide(pickle.dumps([*secrets, "username"]))
    assert not [one for one in secrets if one.encode() in hidden]
    assert b"username" in hidden
    words = found.hide_texts(["t.py", "--password", "hunter2-hunter2", "x"])
    assert words == ["t.py", "--password", REDACTED, "x"]


def test_secrets_are_found_in_queues_enumerations_views_and_under_names_of_bytes():
    secrets = [password() for _ in range(9)]

    class Login(Enum):
        PASSWORD = secrets[1]

    values = {
        "a": deque([{"password": secrets[0]}]),
        "b": Login.PASSWORD,
        "c": partial(print, password=secrets[2]),
        "d": {"secret": memoryview(secrets[3].encode())},
        "e": [["api_key", secrets[4]], ["password", "username"]],
        "f": {b"password": secrets[5].encode()},
        "passwords": {secrets[6]},
        "h": [{"secret": secrets[8]}, "a1b2c3d4"],
        "g": {frozenset(): ({"secret": secrets[7]},)},
    }
    found = Secrets({}, [])
    found.look_at(values)
    hidden = found.hide(pickle.dumps([*secrets, "username"]))
    assert not [one for one in secrets if one.encode() in hidden]
    assert b"username" in hidden


def test_secrets_are_found_in_arrays_of_texts_by_the_name_of_the_array():
    numpy = pytest.importorskip("numpy")
    secret = password()
    found = Secrets({}, [])
    found.look_at({"passwords": numpy.array([secret, "x"])})
    assert secret.encode() not in found.hide(pickle.dumps([secret]))


def test_secrets_are_found_in_the_memory_of_small_arrays_of_texts():
    token = tokens()["github"]
    for coding in ("utf-8", "utf-32-le"):
        data = ("abc".ljust(50, "\0") + token.ljust(50, "\0")).encode(coding)
        hidden = Secrets({}, []).hide_raw(data)
        assert len(hidden) == len(data)
        assert token.encode(coding) not in hidden


def test_secrets_of_the_command_and_within_variables_are_hidden_under_any_name() -> None:
    url, option, value = "Kx7quiet-lamp", "Zr4sober-fork", "Wq2brisk-oven"
    words = ["t.py", f"--token={option}", "--password", value]
    found = Secrets({"DB_URL": f"postgres://u:{url}@db/x"}, [], words)
    found.look_at({"a": url, "b": [option, {"c": value}]})
    data = found.hide(pickle.dumps([url, option, {"c": f"it is {value}"}]))
    for secret in (url, option, value):
        assert secret.encode() not in data
    assert found.hide_texts(words)[0] == "t.py"
