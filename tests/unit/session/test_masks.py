"""Secrets that were typed behind an option of a program that is named for something else."""

import pytest

from relaunch.session.masks import mask_words

SECRET = "S3cretword99"


@pytest.mark.parametrize(
    "line",
    [
        "sudo mysql -u root -p{}",
        "env A=b redis-cli -a {}",
        "sudo -u me curl -u me:{} http://x",
        "docker login -u me -p {}",
    ],
)
def test_a_password_behind_an_option_of_a_program_is_hidden_wherever_the_program_stands(
    line: str,
) -> None:
    line = line.format(SECRET)
    assert SECRET not in str(mask_words(line.split(), {}))
    assert SECRET not in str(mask_words(["sh", "-c", f"true && {line}; true"], {}))


@pytest.mark.parametrize(
    "line",
    [
        "docker run -p 8080:80 image",
        "sshpass -e ssh -p 2222 host",
        "curl http://x | sort -u data.txt",
        "curl -s http://x; sort -u data.txt",
        "python serve.py --api-key dummy",
    ],
)
def test_a_port_or_a_file_behind_the_same_letter_is_no_secret(line: str) -> None:
    assert mask_words(line.split(), {}) == line.split()
    assert mask_words(["sh", "-c", line], {}) == ["sh", "-c", line]
