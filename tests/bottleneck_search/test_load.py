"""Rule files are data: what is wrong is refused with its place, and nothing in them runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ioprism import RuleError
from ioprism.bottleneck_search.rule_language.load import bundled_rules, read_rules, rules
from ioprism.views.records import FIELDS

GOOD = """
[access_time]
name = "Long calls"
condition = "time / count > 1 ms"
values.each = "time / count"

[[access_time.reasons]]
message = "{count} calls take {each} each {{sic}}"
"""


def written(folder: Path, text: str, name: str = "rules.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_the_papers_rules_come_with_it() -> None:
    assert set(bundled_rules()) >= {
        "small_reads", "small_writes", "excessive_metadata_access", "operation_imbalance",
        "size_imbalance", "random_operations",
    }  # fmt: skip


def test_a_file_adds_replaces_and_switches_off(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD + "[small_reads]\nenabled = false\n")
    keys = {rule.key for rule in rules(path)}

    assert "access_time" in keys
    assert "small_reads" not in keys
    assert "small_writes" in keys


def test_a_file_may_do_without_the_bundled_rules(tmp_path: Path) -> None:
    assert [r.key for r in rules(written(tmp_path, "defaults = false\n" + GOOD))] == ["access_time"]


def test_yaml_says_the_same(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    text = """
access_time:
  condition: time / count > 1 ms
  reasons:
    - message: "{count} calls"
"""
    assert list(read_rules(written(tmp_path, text, "rules.yaml")).rules) == ["access_time"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a]\ncondition = \"__import__('os').system('id')\"\n[[a.reasons]]\nmessage='x'",
         "rules.toml: rule a: condition, column 12:"),
        ("[a]\ncondition = \"time.real > 0 s\"\n[[a.reasons]]\nmessage='x'",
         "rule a: condition, column 5: '.' is not allowed"),
        ("[a]\ncondition = \"[x for x in time]\"\n[[a.reasons]]\nmessage='x'", "column 1"),
        ("[a]\ncondition = \"{{ 7*7 }}\"\n[[a.reasons]]\nmessage='x'", "column 1"),
        ("[a]\n[[a.reasons]]\nmessage='{{ config }} {time.__class__}'",
         "rule a: message of reason 1, column 14: only {field}"),
        ("[a]\n[[a.reasons]]\nmessage='{time!r}'", "only {field}"),
        ("[a]\n[[a.reasons]]\nmessage='{time:>999999999}'", "only {field}"),
        ("[a]\n[[a.reasons]]\nmessage='{password}'", "unknown field 'password'"),
        ("[a]\n[[a.reasons]]\nmessage='{time:shell}'", "unknown format 'shell'"),
        ("[a]\nvalues.time = '1'\n[[a.reasons]]\nmessage='x'", "'time' needs another name"),
        ("[a]\nvalues.x = 'y'\n[[a.reasons]]\nmessage='x'", "values.x, column 1"),
        ("[a]\ncondition = 5\n[[a.reasons]]\nmessage='x'", "must be text"),
        ("[a]\ncommand = 'id'\n[[a.reasons]]\nmessage='x'", "there is no 'command' in a rule"),
        ("[a]\n", "at least one entry in `reasons`"),
        ("['A b']\n[['A b'.reasons]]\nmessage='x'", "lower-case letters"),
        ("a = 3", "a rule is a table"),
        ("[a]\nreasons = [1]", "reason 1 has a message"),
        ("[a]\n[[a.reasons]]\ncondition='true'", "reason 1 needs a message"),
        ("[[[", "this is not TOML"),
        ("defaults = 3", "`defaults` must be true or false"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RuleError) as caught:
        read_rules(written(tmp_path, text))

    assert message in str(caught.value)
    assert str(caught.value).startswith("rules.toml: ")


def test_yaml_has_no_aliases(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    levels = [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 30)]
    text = "\n".join(["a0: &a0 [1, 2]", *levels])
    with pytest.raises(RuleError, match="there is an alias"):
        read_rules(written(tmp_path, text, "rules.yaml"))


@pytest.mark.parametrize(
    "text", ["a: !!python/object/apply:os.system ['echo hacked']", "a: 2026-02-30"]
)
def test_yaml_makes_no_objects_and_no_impossible_dates(tmp_path: Path, text: str) -> None:
    pytest.importorskip("yaml")

    with pytest.raises(RuleError, match=r"rules.yaml: this is not YAML"):
        read_rules(written(tmp_path, text, "rules.yaml"))


def test_files_that_are_not_there_or_not_text_are_one_message(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="no such rule file"):
        read_rules(tmp_path / "missing.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RuleError, match=r"byte 0 is not UTF-8.\nHint: "):
        read_rules(tmp_path / "binary.toml")
    with pytest.raises(RuleError, match=r"cannot be read \(Is a directory\).\nHint: "):
        read_rules(tmp_path)


def test_every_field_is_in_the_reference_and_its_example_is_sound(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/reference/rule-language.md").read_text()
    example = page.split("```toml\n")[1].split("```")[0]

    for name in FIELDS:
        assert f"| `{name}` |" in page
    assert list(read_rules(written(tmp_path, example)).rules) == ["access_time"]
