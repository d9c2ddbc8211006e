"""What the docstrings of public names must have: each name has one, and it says what is raised.

Public are the names in the ``__all__`` of each module, and the methods of these classes that have no underscore. What a
function raises is read from its source: the ``raise`` statements in it and in the private functions of its module that
it calls, less what is caught on the way. Each must be named under ``Raises:``, as it is or by a base class, in the
docstring of the function or, for methods, of the class. Only exceptions that the source names are looked for.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

import grammarspec

ROOT = Path(grammarspec.__file__).parent
INTERNAL = {"AssertionError", "NotImplementedError"}  # no caller causes these
PLAIN = {"ABC", "Generic", "Protocol"}  # base classes that document no methods

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(eq=False)
class Module:
    """The definitions of a module: functions by name, methods by class and name."""

    functions: dict[str, Function] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    methods: dict[tuple[str, str], Function] = field(default_factory=dict)
    public: list[str] = field(default_factory=list)


def read(path: Path) -> Module:
    module = Module()
    for node in ast.parse(path.read_text("utf-8")).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                module.functions[name] = node
            case ast.ClassDef(name=name):
                module.classes[name] = node
                # The last definition of a name is no overload.
                module.methods |= {(name, method.name): method for method in node.body if isinstance(method, Function)}
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                module.public = ast.literal_eval(value) if isinstance(value, ast.List) else []
    return module


MODULES = {
    str(path.relative_to(ROOT)): read(path) for path in sorted(ROOT.rglob("*.py*")) if path.suffix in (".py", ".pyi")
}
CLASSES = {name: node for module in MODULES.values() for name, node in module.classes.items()}


def bases(name: str) -> Iterator[str]:
    """A class by its name, and the names of all its base classes."""
    yield name
    if name in CLASSES:
        for base in CLASSES[name].bases:
            yield from bases(ast.unparse(base.value if isinstance(base, ast.Subscript) else base))
    elif isinstance(known := getattr(builtins, name, None), type):
        yield from (base.__name__ for base in known.__mro__[1:])


@cache
def is_one_of(name: str, others: frozenset[str]) -> bool:
    return not others.isdisjoint(bases(name))


def names_of(node: ast.expr | None) -> frozenset[str]:
    """The names of the exceptions of an ``except`` clause."""
    if node is None:
        return frozenset(["BaseException"])
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return frozenset(ast.unparse(part).rpartition(".")[2] for part in parts)


def raised(node: ast.AST, module: Module, owner: str | None, seen: frozenset[str] = frozenset()) -> set[str]:
    """The names of the exceptions that a part of a function raises, if its source names them."""
    found: set[str] = set()
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() | ast.ClassDef():
            return found  # it is called elsewhere, if at all
        case ast.Raise(exc=ast.Call(func=ast.Name(id=name)) | ast.Name(id=name)) if name[0].isupper():
            found.add(name)
        case ast.Call(func=ast.Name(id=name)) if name[0] == "_" and name not in seen and name in module.functions:
            found |= raised_by(module.functions[name], module, None, seen | {name})
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name)) if (
            owner and name[0] == "_" and name not in seen and (owner, name) in module.methods
        ):
            found |= raised_by(module.methods[owner, name], module, owner, seen | {name})
        case ast.Try(body=body, handlers=handlers):
            caught = frozenset[str]().union(*(names_of(handler.type) for handler in handlers))
            within = [raised(part, module, owner, seen) for part in body]
            found |= {name for names in within for name in names if not is_one_of(name, caught)}
            rest = [*(part for handler in handlers for part in handler.body), *node.orelse, *node.finalbody]
            return found.union(*(raised(part, module, owner, seen) for part in rest))
    return found.union(*(raised(part, module, owner, seen) for part in ast.iter_child_nodes(node)))


@cache
def raised_by(function: Function, module: Module, owner: str | None, seen: frozenset[str] = frozenset()) -> set[str]:
    return set[str]().union(*(raised(part, module, owner, seen) for part in function.body))


def section(node: Function | ast.ClassDef | None, title: str) -> Iterator[str]:
    """The names that a section of a docstring explains."""
    lines = ((node and ast.get_docstring(node)) or "").splitlines()
    if f"{title}:" not in lines:
        return
    for line in lines[lines.index(f"{title}:") + 1 :]:
        if line and not line.startswith(" "):
            return
        if line.startswith("    ") and line[4:5] != " ":
            names, _, _ = line.strip().partition(":")
            if names.endswith(" and others"):
                yield "BaseException"
            yield from names.removesuffix(" and others").split(", ")


def definitions() -> Iterator[tuple[str, Module, str | None, Function | ast.ClassDef]]:
    """The public definitions: of each its place, its module, its class if it is a method, and its source."""
    for path, module in MODULES.items():
        for name in module.public:
            if name in module.functions:
                yield f"{path}: {name}", module, None, module.functions[name]
            elif name in module.classes:
                yield f"{path}: {name}", module, None, module.classes[name]
                for (owner, method), node in module.methods.items():
                    if owner == name and (method[0] != "_" or method in ("__init__", "__post_init__", "__call__")):
                        yield f"{path}: {name}.{method}", module, name, node


def is_described(owner: str, node: ast.ClassDef, name: str) -> bool:
    """Whether a method without a docstring is described elsewhere: by a base class, a protocol, or its own class."""
    if name[0] == "_" or name in section(node, "Attributes"):
        return True
    protocols = [one for one, node in CLASSES.items() if any(ast.unparse(base) == "Protocol" for base in node.bases)]
    for one in [*bases(owner), *protocols]:
        if one not in CLASSES:
            if one not in PLAIN:  # a class of another package, which documents its methods
                return True
            continue
        described = {n.name for n in CLASSES[one].body if isinstance(n, Function) and ast.get_docstring(n)}
        if name in described or (one in protocols and name in section(CLASSES[one], "Attributes")):
            return True
    return False


DEFINITIONS = list(definitions())


def test_public_names_are_found() -> None:
    places = {place for place, *_ in DEFINITIONS}
    assert {"models/model.py: Model.batch", "constraint.py: compile", "decoding/loop.py: generate"} <= places
    assert len(places) > 500


def test_public_names_have_docstrings() -> None:
    missing = [
        place
        for place, module, owner, node in DEFINITIONS
        if not ast.get_docstring(node) and not (owner and is_described(owner, module.classes[owner], node.name))
    ]
    assert not missing, "\n".join(missing)


def test_docstrings_say_what_is_raised() -> None:
    missing = []
    for place, module, owner, node in DEFINITIONS:
        if isinstance(node, ast.ClassDef):
            continue
        told = frozenset([*section(node, "Raises"), *section(module.classes[owner] if owner else None, "Raises")])
        for name in bases(owner) if owner else ():
            if name in CLASSES and not ast.get_docstring(node):
                inherited = (n for n in CLASSES[name].body if isinstance(n, Function) and n.name == node.name)
                told |= frozenset(error for n in inherited for error in section(n, "Raises"))
        wrong = sorted(n for n in raised_by(node, module, owner) - INTERNAL if not is_one_of(n, told))
        missing += [f"{place} raises {name}, and its docstring does not say so" for name in wrong]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f():\n raise KeyError(1)", {"KeyError"}),
        ("def f():\n _g()\ndef _g():\n raise KeyError", {"KeyError"}),
        ("def f():\n try:\n  _g()\n except LookupError:\n  raise TypeError from None\ndef _g():\n raise KeyError",
         {"TypeError"}),
        ("def f():\n def inner():\n  raise KeyError\n return inner", set()),
        ("def f(error):\n raise error", set()),
    ],
)  # fmt: skip
def test_what_is_raised_is_read_from_the_source(source: str, names: set[str], tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    module = read(path)
    assert raised_by(module.functions["f"], module, None) == names
