"""Names of compiled functions: short, and the same in every process."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from relaunch.look.stacks.frames import Frame
from relaunch.look.stacks.native import UNKNOWN, short_name, washed


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("clock_nanosleep", "clock_nanosleep"),
        ("0x7f9f1fe4524a", UNKNOWN),
        ("??", UNKNOWN),
        ("", UNKNOWN),
        ("foo.constprop.0", "foo"),
        ("foo.part.3.cold", "foo"),
        ("bar [clone .isra.0]", "bar"),
        ("pthread_cond_wait@@GLIBC_2.3.2", "pthread_cond_wait"),
        (
            "void c10d::Work<float, std::x<int> >::execute(c10::ptr<A, B> const&) const",
            "c10d::Work::execute",
        ),
        ("std::condition_variable::wait(std::unique_lock<std::mutex>&)",
         "std::condition_variable::wait"),
        ("gloo::(anonymous namespace)::Loop::run()", "gloo::{anonymous}::Loop::run"),
        ("std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)",
         "std::operator<<"),
        ("a::b<int>::operator()(int) const", "a::b::operator()"),
        ("operator new(unsigned long)", "operator new"),
        ("core::ops::FnOnce::call_once::h0123456789abcdef", "core::ops::FnOnce::call_once"),
        ("<Box<F,A> as core::FnOnce<Args>>::call_once", "<Box as core::FnOnce>::call_once"),
    ],
)  # fmt: skip
def test_a_name_is_what_a_person_would_call_it(name, short):
    assert short_name(name) == short


def native(function: str, file: str) -> Frame:
    return Frame(file=file, line=0, function=function, is_native=True)


def test_how_python_and_its_threads_began_is_left_out_and_what_embeds_it_is_not():
    main = Frame(file="t.py", line=1, function="main")
    inner, outer = native("read", "/lib/libc.so.6"), native("0x12", "/lib/libc.so.6")
    began = native("thread_run", "/usr/lib/libpython3.11.so.1.0")
    sourced = native("Py_RunMain", "Modules/main.c")
    assert washed((inner, main, began, sourced, outer)) == (inner, main)
    embeds = native("serve", "/usr/bin/uwsgi")
    assert [one.function for one in washed((main, embeds, outer))] == ["main", "serve"]
    assert washed((inner,)) == (inner,)


@given(some.text(alphabet="ab:<>() ,*&~0x.@{}", max_size=30))
def test_a_name_is_never_empty_whatever_a_compiler_wrote(name):
    assert short_name(name)
