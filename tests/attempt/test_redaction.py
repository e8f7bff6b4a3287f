"""What leaves an attempt holds no secret and no private path, and is still what it was otherwise."""

from __future__ import annotations

import base64
import html
import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_caliper.attempt.redaction import MAX_DEPTH, Redactor, redact_record, redact_turn
from pytest_caliper.attempt.secrets import is_key_name, secret_values
from pytest_caliper.contracts import Workspace
from pytest_caliper.runs.records import AttemptKey, AttemptRecord, ChangedFile, Turn

SECRET = 'p4ss/w0rd+with "quotes" & \\ ünï'
ENV = {
    "HOME": "/home/ann",
    "DB_PASSWORD": SECRET,
    "GH_TOKEN": "zz-gh-7731",
    "PLAIN": "hello-world",
    "SHORT_KEY": "abc12",
    "FLAG_TOKEN": "true",
    "SSH_AUTH_SOCK": "/tmp/ssh-abc/agent.1",
    "KEYBOARD": "qwertz-layout",
    "MONKEY": "bananas-here",
    "TOOL_KEY": "/usr/bin",
    "MAX_OUTPUT_TOKENS": "128000",
    "EMPTY_SECRET": "",
}


def redactor(*referenced: str, env: dict[str, str] | None = None, paths: dict[Path, str] | None = None) -> Redactor:
    return Redactor.from_environment(ENV if env is None else env, referenced, paths or {})


@pytest.mark.parametrize(
    "name",
    [
        *[
            "GH_TOKEN",
            "OPENAI_API_KEY",
            "PGPASSWORD",
            "AWS_SECRET_ACCESS_KEY",
            "npm_config__authToken",
            "DB_PASSWD",
            "MY_CREDENTIALS",
        ],
        *[
            "GITHUB_PAT",
            "SIGNING_KEY_1",
            "apiKey",
            "CLIENT_SECRET",
            "X_AUTH",
            "MYSQL_PWD",
            "VAULT_PASSPHRASE",
            "AWS_ACCESS_KEY_ID",
        ],
    ],
)
def test_names_of_keys(name: str) -> None:
    assert is_key_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *[
            "SSH_AUTH_SOCK",
            "KEYBOARD",
            "MONKEY",
            "PWD",
            "OLDPWD",
            "AUTHOR",
            "GIT_AUTHOR_NAME",
            "PATH",
            "MAX_OUTPUT_TOKENS",
            "HOTKEYS",
        ],
        *[
            "AWS_SHARED_CREDENTIALS_FILE",
            "GIT_ASKPASS",
            "KEYCLOAK_URL",
            "TOKENIZERS_PARALLELISM",
            "COMPASS",
            "",
            "_",
            "SECRETARY",
        ],
    ],
)
def test_names_that_only_look_like_keys(name: str) -> None:
    assert not is_key_name(name)


def test_values_are_told_by_the_name_of_their_variable() -> None:
    r = redactor("PLAIN")
    assert r.redact("a zz-gh-7731 b hello-world c") == "a [redacted:GH_TOKEN] b [redacted:PLAIN] c"
    assert r.count == 2


@pytest.mark.parametrize(
    "name", ["SHORT_KEY", "FLAG_TOKEN", "SSH_AUTH_SOCK", "KEYBOARD", "MONKEY", "TOOL_KEY", "MAX_OUTPUT_TOKENS"]
)
def test_ordinary_values_stay(name: str) -> None:
    r = redactor()
    assert r.redact(f"value: {ENV[name]}.") == f"value: {ENV[name]}."
    assert r.count == 0


def test_a_referenced_variable_that_is_unset_is_nothing() -> None:
    assert redactor("NOT_SET", "EMPTY_SECRET").redact("NOT_SET and nothing") == "NOT_SET and nothing"


def test_a_secret_that_looks_like_a_path_is_a_secret_all_the_same() -> None:
    assert redactor(env={"AWS_SECRET": "/Ab3dEf/xyZ01"}).redact("x /Ab3dEf/xyZ01 y") == "x [redacted:AWS_SECRET] y"


SPELLINGS = {
    "plain": SECRET,
    "json": json.dumps(SECRET),
    "json, not ascii": json.dumps(SECRET, ensure_ascii=False),
    "json in json": json.dumps(json.dumps({"k": SECRET})),
    "json lines": f"{json.dumps({'k': 1})}\n{json.dumps({'k': SECRET})}\n",
    "url": f"https://h/?q={quote(SECRET, safe='')}",
    "url path": quote(SECRET),
    "form": quote_plus(SECRET),
    "lower url": quote(SECRET, safe="").lower(),
    "html": html.escape(SECRET),
    "repr": repr(SECRET),
    "basic": base64.b64encode(f"user:{SECRET}".encode()).decode(),
    "basic 2": base64.b64encode(f"me:{SECRET}".encode()).decode(),
    "basic 3": base64.b64encode(f"a:{SECRET}\n".encode()).decode(),
    "url-safe base64": base64.urlsafe_b64encode(SECRET.encode()).decode(),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_secret_is_found_in_every_spelling(spelling: str) -> None:
    r = redactor()
    out = r.redact(f"before {SPELLINGS[spelling]} after")
    assert "[redacted:DB_PASSWORD]" in out
    assert out.startswith("before ")
    assert out.endswith(" after")
    assert "w0rd" not in out
    assert r.count == 1


def test_the_longest_secret_counts() -> None:
    r = redactor(env={"A_KEY": "abcdef", "B_KEY": "abcdefghij", "C_KEY": "xxabcdefyy"})
    assert r.redact("abcdefghij abcdefgh xxabcdefyy") == "[redacted:B_KEY] [redacted:A_KEY]gh [redacted:C_KEY]"
    assert r.count == 3


def test_the_lines_of_a_key_in_the_environment_are_secrets_too() -> None:
    line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
    r = redactor(env={"DEPLOY_KEY": f"-----BEGIN RSA PRIVATE KEY-----\n{line}\nshort==\n-----END RSA PRIVATE KEY-----\n"})
    assert r.redact(f"     2\t{line}\n     3\tshort==") == "     2\t[redacted:DEPLOY_KEY]\n     3\tshort=="


A = "aB3" * 20
TOKENS = {
    "anthropic-key": f"sk-ant-api03-{A}",
    "openai-key": f"sk-proj-{A}",
    "api-key": f"sk-{A}",
    "github-token": f"ghp_{A[:36]}",
    "gitlab-token": f"glpat-{A[:20]}",
    "slack-token": f"xoxb-123456789012-{A[:24]}",
    "aws-key": "AKIAIOSFODNN7EXAMPLE",
    "google-key": f"AIza{A[:35]}",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4fwpM",
    "huggingface-token": f"hf_{A[:34]}",
    "npm-token": f"npm_{A[:36]}",
    "pypi-token": f"pypi-AgEIcHlwaS5vcmc{A}",
    "stripe-key": f"sk_live_{A[:24]}",
    "private-key": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{A}\n{A}==\n-----END OPENSSH PRIVATE KEY-----",
}


@pytest.mark.parametrize("kind", TOKENS)
@pytest.mark.parametrize(
    "around", ["{}", "a {} b", "KEY={};", '"{}"', "x\n{}\ny", "({})", "\x1b[31m{}\x1b[0m", "'{}',", "https://h/?k={}&x=1"]
)
def test_tokens_are_known_by_their_shape(kind: str, around: str) -> None:
    r = redactor(env={})
    assert r.redact(around.format(TOKENS[kind])) == around.format(f"[redacted:{kind}]")
    assert r.count == 1


@pytest.mark.parametrize("kind", TOKENS)
@pytest.mark.parametrize("before", ["", "\n", "\t", "é", "\x1b[1m"])
def test_tokens_inside_json(kind: str, before: str) -> None:
    for ascii_only in (True, False):
        text = json.dumps({"text": f"{before}{TOKENS[kind]}\nend"}, ensure_ascii=ascii_only)
        assert json.loads(redactor(env={}).redact(text)) == {"text": f"{before}[redacted:{kind}]\nend"}


@pytest.mark.parametrize(
    "text",
    [
        "task-001-skill-attempt-that-is-rather-long-2026",
        "risk-assessment-of-a-very-long-name-indeed-2026",
        "sk-learn-compatible-estimators-and-more-of-them",
        "npm_config_registry=https://registry.example/",
        "hf_hub_download(repo_id)",
        "pypi-attestations 0.0.1",
        "AKIA and ASIA",
        "Bearer authentication-is-required-for-this-endpoint",
        "the bearer of responsibilities",
        "eyJhbGciOiJIUzI1NiJ9",
        "A PEM file begins with -----BEGIN PRIVATE KEY----- and goes on",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "https://example.com:8080/path@2x.png",
        "https://user@example.com/x",
        "git@github.com:owner/repo.git",
        "Authorization: Bearer $TOKEN",
        "https://$USER:$PASSWORD@host/",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    r = redactor(env={})
    assert r.redact(text) == text
    assert r.count == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abc123def456ghi", "Authorization: Bearer [redacted:bearer-token]"),
        ('{"authorization": "bearer abc123def456ghi"}', '{"authorization": "bearer [redacted:bearer-token]"}'),
        ("Authorization: Basic dXNlcjpwYXNzMTIz", "Authorization: Basic [redacted:credentials]"),
        ("authorization: token 0123456789abcdef", "authorization: token [redacted:credentials]"),
        ('"x-api-key": "0123456789abcdef"', '"x-api-key": "[redacted:credentials]"'),
        ("git clone https://me:hunter22@host/x.git", "git clone https://[redacted:url-credentials]@host/x.git"),
        ("Bearer zz-gh-7731", "Bearer [redacted:GH_TOKEN]"),
        ("https://me:zz-gh-7731@host/", "https://me:[redacted:GH_TOKEN]@host/"),
        ("-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "[redacted:private-key]"),
    ],
)
def test_what_is_introduced_as_a_secret_is_one(text: str, expected: str) -> None:
    r = redactor()
    assert r.redact(text) == expected
    assert r.count == 1


def test_redacting_again_changes_nothing() -> None:
    r = redactor(env={"A_KEY": "redacted", "B_KEY": "A_KEY]"})
    once = r.redact("is redacted A_KEY] sk-ant-" + A)
    assert once == "is [redacted:A_KEY] [redacted:B_KEY] [redacted:anthropic-key]"
    assert r.redact(once) == once
    assert r.count == 3


BREAKING = ['","a":"', '"quoted"', "12345678", "nabcdef", "tabcdef", "u00e9abc", "\\nabcdef", '{"k": "v1"}', "1.5e300", 'x"y"z1']


@pytest.mark.parametrize("secret", BREAKING)
@pytest.mark.parametrize(
    "value",
    [
        {"k": "{}"},
        {"k": "a\n{}\tb"},
        {"{}": ["{}", "{}"]},
        {"k": "\nabcdef é\tabcdef \\\nabcdef"},
        {"n": 12345678, "m": [1123456789, -12345678.5, 1.5e300]},
        {"a": "", "b": '"quoted"', "k": "v1"},
        ["x", "y", "z1"],
    ],
    ids=repr,
)
def test_json_stays_json(secret: str, value: Any) -> None:
    filled = json.loads(json.dumps(value).replace("{}", json.dumps(secret)[1:-1]))
    for ascii_only in (True, False):
        line = json.dumps(filled, ensure_ascii=ascii_only)
        r = redactor(env={"A_KEY": secret})
        texts = {
            "line": (line, json.loads),
            "lines": (f"starting\n{line}\n{line}\n", lambda text: [json.loads(entry) for entry in text.split("\n")[1:3]]),
            "pretty": (json.dumps(filled, indent=1, ensure_ascii=ascii_only), json.loads),
        }
        for text, read in texts.values():
            out = r.redact(text)
            read(out)
            assert r.redact(out) == out


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def strings(value: Any) -> list[str]:
    """Every text in a JSON value, keys and numbers included."""
    if isinstance(value, dict):
        return [text for pair in value.items() for entry in pair for text in strings(entry)]
    if isinstance(value, list):
        return [text for entry in value for text in strings(entry)]
    return [str(value)]


@given(json_values, st.text(min_size=6, max_size=12), st.booleans())
def test_any_json_stays_json_and_loses_the_secret(value: Any, secret: str, ascii_only: bool) -> None:
    env = {"A_KEY": secret}
    values = list(secret_values(env, ()))
    assume(values and not any(told in "[redacted:A_KEY]" for told in values))
    text = json.dumps({"value": value, "said": f"<{secret}>"}, ensure_ascii=ascii_only)
    read = json.loads(redactor(env=env).redact(text))
    assert read
    for found in strings(read):
        assert not any(told in found.replace("[redacted:A_KEY]", "\0") for told in values)


@given(st.text(max_size=30), st.text(min_size=6, max_size=20), st.text(max_size=30))
def test_no_secret_survives(before: str, secret: str, after: str) -> None:
    env = {"A_KEY": secret}
    for told in secret_values(env, ()):
        if told not in "[redacted:A_KEY]":
            assert told not in redactor(env=env).redact(f"{before}{secret}{after}").replace("[redacted:A_KEY]", "\0")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/run/c/7/work", "$WORK"),
        ("/run/c/7/work/a.txt", "$WORK/a.txt"),
        ("in /run/c/7/work.", "in $WORK."),
        ("/run/c/7/work.bak", "$ROOT/work.bak"),
        ("/run/c/7/worker", "$ROOT/worker"),
        ("/run/c/7/home/.claude", "$HOME/.claude"),
        ("/run/c/7/tmp/x", "$ROOT/tmp/x"),
        ("/run/c/77/work", "/run/c/77/work"),
        ("a:/run/c/7/work:/run/c/7/home", "a:$WORK:$HOME"),
        ("file:///run/c/7/work/x", "file://$WORK/x"),
        ("-I/run/c/7/work/include", "-I$WORK/include"),
        ('{"cwd":"\\/run\\/c\\/7\\/work"}', '{"cwd":"$WORK"}'),
        ("~/.claude/projects/-run-c-7-work/1.jsonl", "~/.claude/projects/$WORK/1.jsonl"),
        ("/home/ann/proj/specs/a.yaml", "$PROJECT/specs/a.yaml"),
        ("/home/ann/proj2/a.yaml", "~/proj2/a.yaml"),
        ("/home/ann/.npmrc and /home/anna", "~/.npmrc and /home/anna"),
        ("-home-ann-proj/x -home-ann-other", "$PROJECT/x ~-other"),
    ],
)
def test_private_directories_are_told_by_their_role(text: str, expected: str) -> None:
    r = redactor(paths={Path("/home/ann/proj"): "$PROJECT"}).for_workspace(Workspace.at(Path("/run/c/7")))
    assert r.redact(text) == expected
    assert r.redact(expected) == expected
    assert r.count == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/root", "~"),
        ("/root/x", "~/x"),
        ("cd /root; ls", "cd ~; ls"),
        ("/var/root", "/var/root"),
        ("$WORK/root", "$WORK/root"),
        ("../root", "../root"),
        ("chroot/root", "chroot/root"),
        ("file:///root/x", "file://~/x"),
        ("\x1b[34m/root/x", "\x1b[34m~/x"),
        ('{"a":"x\\n/root/y"}', '{"a":"x\\n~/y"}'),
        ("/root2 /roots/", "/root2 /roots/"),
        ("-root", "-root"),
    ],
)
def test_a_home_of_one_name_is_told_only_where_it_begins(text: str, expected: str) -> None:
    assert redactor(env={"HOME": "/root"}).redact(text) == expected


@pytest.mark.parametrize("home", ["/", "", "relative", "//"])
def test_a_home_that_is_no_directory_of_its_own_is_left_alone(home: str) -> None:
    assert redactor(env={"HOME": home}).redact("/usr/bin relative / //") == "/usr/bin relative / //"


def test_both_names_of_a_linked_directory_are_known(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    r = redactor(env={}).for_workspace(Workspace.at(tmp_path / "link" / "1"))
    assert r.redact(f"{tmp_path}/real/1/work/x {tmp_path}/link/1/work/x") == "$WORK/x $WORK/x"


def test_a_directory_with_an_odd_name(tmp_path: Path) -> None:
    root = tmp_path / 'a "b" é'
    r = redactor(env={}).for_workspace(Workspace.at(root))
    for text in (
        f"{root}/work",
        json.dumps(f"{root}/work"),
        json.dumps(f"{root}/work", ensure_ascii=False),
        quote(f"{root}/work"),
    ):
        assert r.redact(text).strip('"') == "$WORK"


def test_attempts_count_for_themselves_and_share_the_rest() -> None:
    base = redactor()
    first, second = (base.for_workspace(Workspace.at(Path(f"/run/{n}"))) for n in (1, 2))
    assert first.redact("zz-gh-7731 /run/1/work /run/2/work") == "[redacted:GH_TOKEN] $WORK /run/2/work"
    assert second.redact("/run/2/work") == "$WORK"
    assert (base.count, first.count, second.count) == (0, 1, 0)


@pytest.mark.parametrize(
    ("text", "expected"), [("a\ud800b", "a\ufffdb"), ("\ud83d\ude00", "😀"), ("\udcff", "\ufffd"), ("\u2028\x00é", "\u2028\x00é")]
)
def test_lone_surrogates_leave(text: str, expected: str) -> None:
    assert redactor().redact(text) == expected


def test_a_secret_that_is_no_utf8(tmp_path: Path) -> None:
    value = os.fsdecode(b"abc\xff\xfedef")
    assert redactor(env={"A_KEY": value}).redact(f"<{value}>") == "<[redacted:A_KEY]>"


def test_json_values_are_redacted_keys_included() -> None:
    r = redactor("PLAIN")
    value = {"zz-gh-7731": ["hello-world", 1, 1.5, None, True, ("zz-gh-7731",)], "x": {"y": "\ud800"}}
    assert r.redact_json(value) == {
        "[redacted:GH_TOKEN]": ["[redacted:PLAIN]", 1, 1.5, None, True, ["[redacted:GH_TOKEN]"]],
        "x": {"y": "\ufffd"},
    }
    assert r.count == 3


def test_keys_that_become_equal_are_kept_apart() -> None:
    r = redactor(env={"A_KEY": "first-value", "B_KEY": "first-value"})
    assert r.redact_json({"first-value": 1, "[redacted:A_KEY]": 2}) == {"[redacted:A_KEY]": 1, "[redacted:A_KEY] (2)": 2}


def test_json_that_json_cannot_say() -> None:
    out = redactor(env={"PIN_KEY": "87654321"}).redact_json(
        {"nan": float("nan"), "inf": float("inf"), "pin": 87654321, "path": Path("/x"), 1: b"y"}
    )
    assert out == {"nan": "nan", "inf": "inf", "pin": "[redacted:PIN_KEY]", "path": "/x", "1": "b'y'"}
    json.dumps(out, allow_nan=False)


def test_json_nested_beyond_reason() -> None:
    value: Any = "x"
    for _ in range(5 * MAX_DEPTH):
        value = [value]
    assert "nested too deep" in json.dumps(redactor().redact_json(value))


def record(text: str) -> AttemptRecord:
    """A record with `text` wherever an agent, a judge or a CLI has a say."""
    return AttemptRecord(
        key=AttemptKey(spec="/home/ann/x.eval.yaml", task_id="task-001", arm="skill", attempt=1),
        task_name="Task",
        outcome="task_fail",
        reason=text,
        output=text,
        duration_seconds=1.0,
        started=2.0,
        wall_seconds=3.0,
        cheat_evidence=(text, text),
        assert_evidence=text,
        autorater_reasoning=text,
        model=text,
        judge_model=text,
        cli_version=text,
        judge_cli_version=text,
        skills_reported=(text,),
        skills_used=(text,),
        mcp_reported=(text,),
        changed_files=(ChangedFile(path=text, change="added", size=1, text=text, before=text),),
        cleanup_error=text,
        fatal=text,
        transcript_path="/home/ann/t.jsonl",
    )


def test_every_text_of_a_record_is_redacted() -> None:
    told = redact_record(record(f"{SECRET} /home/ann/x"), redactor())
    clean = record("[redacted:DB_PASSWORD] ~/x")
    for field in fields(AttemptRecord):
        if field.name != "redactions":
            assert getattr(told, field.name) == getattr(clean, field.name), field.name
    assert told.redactions == 18
    assert SECRET not in json.dumps(told.to_json(), ensure_ascii=False)


def test_absent_texts_stay_absent_and_the_transcript_counts() -> None:
    r = redactor()
    r.redact("zz-gh-7731")
    bare = AttemptRecord(
        key=AttemptKey(spec="/s", task_id="t", arm="skill", attempt=1),
        task_name="T",
        outcome="pass",
        reason=None,
        output="",
        duration_seconds=0.0,
        started=0.0,
        wall_seconds=0.0,
    )
    told = redact_record(bare, r)
    assert (told.reason, told.skills_reported, told.mcp_reported, told.changed_files) == (None, None, None, ())
    assert told.redactions == 1
    assert redact_record(told, r) == told


def test_every_text_of_a_turn_is_redacted() -> None:
    r = redactor()
    turn = Turn(
        role="tool_use",
        content=SECRET,
        tool_name="zz-gh-7731",
        tool_input={"command": f"echo {SECRET}", "n": [1]},
        tool_output=SECRET,
    )
    assert redact_turn(turn, r) == Turn(
        role="tool_use",
        content="[redacted:DB_PASSWORD]",
        tool_name="[redacted:GH_TOKEN]",
        tool_input={"command": "echo [redacted:DB_PASSWORD]", "n": [1]},
        tool_output="[redacted:DB_PASSWORD]",
    )
    assert r.count == 4
    assert redact_turn(Turn(role="assistant", content="x"), r) == Turn(role="assistant", content="x")


@pytest.mark.parametrize(
    "piece",
    [
        "-----BEGIN PRIVATE KEY-----\n",
        "eyJaaaaaaaaaaa",
        "eyJaaaaaaaaa.",
        "Bearer ",
        "://a:",
        "[redacted:",
        "\\n",
        "sk-",
        "a-b ",
        "authorization: ",
    ],
)
def test_texts_made_to_be_slow_are_not(piece: str) -> None:
    """Each would take hours if any expression were quadratic."""
    text = piece * (1_000_000 // len(piece))
    redactor().redact(text)
    redactor().redact(f"-----BEGIN PRIVATE KEY-----{text}")


KEY = "Kq7Zw2Rt9YpLm4Nb8Vc3Xd5Fs1Gh0Jk6"


@pytest.mark.parametrize("mark", ["...", "…", "\n[… 12 characters cut …]\n", "[… 3,000 bytes cut …]"])
def test_what_a_cut_leaves_of_a_secret_goes_too(mark):
    redactor = Redactor.from_environment({"MY_API_KEY": KEY}, ())
    for kept in (4, 6, 12, 31):
        told = redactor.redact(f"assert '{KEY[:kept]}{mark}{KEY[-kept:]}' == 'x'")
        assert told == f"assert '[redacted:MY_API_KEY]{mark}[redacted:MY_API_KEY]' == 'x'"


@pytest.mark.parametrize("kept", [8, 20, 31])
def test_a_secret_that_is_cut_by_the_end_of_a_text_goes_too(kept):
    redactor = Redactor.from_environment({"MY_API_KEY": KEY}, ())
    assert redactor.redact(f"key: {KEY[:kept]}") == "key: [redacted:MY_API_KEY]"


def test_words_beside_a_mark_of_omission_stay():
    redactor = Redactor.from_environment({"MY_API_KEY": KEY}, ())
    for text in ("and so on...", "Kq7... no", "it ends with Jk6 …", "…Jk6", f"{KEY[:7]}"):
        assert redactor.redact(text) == text
