"""A pseudonym is the same for the same key, leads nowhere without it, and the key is its owner's alone."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relook.errors import BadInput
from relook.pseudonyms import SiteKey, default_place, site_key


def test_the_same_is_named_the_same_and_others_are_not() -> None:
    key, other = SiteKey(bytes(32)), SiteKey(bytes(31) + b"1")
    names = [key.pseudonym("patient", "1"), key.pseudonym("item", "1"), other.pseudonym("patient", "1")]
    assert names[0] == SiteKey(bytes(32)).pseudonym("patient", "1")
    assert len(set(names)) == 3
    assert all(len(name) == 32 and int(name, 16) for name in names)


@given(st.lists(st.text()), st.lists(st.text()))
def test_parts_do_not_run_into_each_other(one: list[str], other: list[str]) -> None:
    key = SiteKey(bytes(32))
    assert (key.pseudonym("x", *one) == key.pseudonym("x", *other)) == (one == other)


def test_no_plain_hash_of_a_number_is_a_pseudonym() -> None:
    name = SiteKey(b"k" * 32).pseudonym("patient", "", "4711")
    plain = {hashlib.new(kind, b"4711").hexdigest()[:32] for kind in ("md5", "sha1", "sha256", "sha512")}
    assert name not in plain


def test_a_key_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "site.key"
    first = site_key(place)
    assert place.stat().st_mode & 0o777 == 0o600
    assert site_key(place).pseudonym("item", "1") == first.pseudonym("item", "1")
    assert site_key(tmp_path / "other.key").mark != first.mark
    assert first.hex not in repr(first)


def test_the_usual_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_place() == tmp_path / ".config" / "relook" / "site.key"
    assert site_key().mark == site_key(default_place()).mark


def test_keys_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "open").write_text("00" * 32)
    (tmp_path / "open").chmod(0o644)
    with pytest.raises(BadInput, match="a key that only its owner reads was needed, but its mode is 644; chmod 600"):
        site_key(tmp_path / "open")
    for name, text in (("short", "00" * 8), ("words", "not a key")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    with pytest.raises(BadInput, match="at least 32 bytes were needed, but 8 came; remove the file"):
        site_key(tmp_path / "short")
    with pytest.raises(BadInput, match="a site's key was needed, hexadecimal digits, but it is none"):
        site_key(tmp_path / "words")
    with pytest.raises(BadInput, match="a file with the site's key was needed, but this is a folder"):
        site_key(tmp_path)
    with pytest.raises(BadInput, match="a place for the site's key was needed, but it cannot be made"):
        site_key(tmp_path / "words" / "site.key")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["open", "short", "words"]
