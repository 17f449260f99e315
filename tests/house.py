"""The house rules as functions: each reads one module's source and yields what breaks it, as (name, what was found).

`tests/test_house.py` runs them over the package and shows, for each, a snippet that it catches.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Finding(NamedTuple):
    """A place, as module:qualified name, and what is wrong there."""

    place: str
    what: str


class Module:
    """One module of the package: its dotted name and its source, parsed once."""

    def __init__(self, name: str, source: str) -> None:
        self.name = name
        self.source = source

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)

    @cached_property
    def functions(self) -> list[tuple[str, Function]]:
        """Every function and method with its qualified name; those inside a function are named after it."""
        return [(name, node) for name, node in self.named if isinstance(node, Function)]

    @cached_property
    def classes(self) -> list[tuple[str, ast.ClassDef]]:
        return [(name, node) for name, node in self.named if isinstance(node, ast.ClassDef)]

    @cached_property
    def named(self) -> list[tuple[str, ast.AST]]:
        return list(_definitions(self.tree, ""))

    def place(self, name: str = "") -> str:
        return f"{self.name}:{name}" if name else self.name

    def around(self, node: ast.AST) -> str:
        """The place of an expression: the innermost function or class around its line."""
        line = getattr(node, "lineno", 0)
        inside = [name for name, outer in self.named if _holds(outer, line)]
        return self.place(inside[-1] if inside else "")

    def calls(self) -> Iterator[tuple[str, ast.Call]]:
        """Every call with the dotted name that is called."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                yield dotted(node.func), node

    def imports(self) -> Iterator[tuple[str, ast.AST]]:
        """Every imported module, wherever the import stands."""
        for node in ast.walk(self.tree):
            yield from _imported(node)


Rule = Callable[[Module], Iterator[Finding]]


def dotted(node: ast.AST) -> str:
    """Return the dotted name that an expression spells, or nothing."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""


def parameters(function: Function) -> list[ast.arg]:
    """Return all parameters but self and cls."""
    spec = function.args
    every = [*spec.posonlyargs, *spec.args, *filter(None, [spec.vararg]), *spec.kwonlyargs, *filter(None, [spec.kwarg])]
    return [arg for arg in every if arg.arg not in ("self", "cls")]


def _definitions(node: ast.AST, before: str) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.ClassDef):
            name = f"{before}{child.name}"
            yield name, child
            yield from _definitions(child, f"{name}.")
        else:
            yield from _definitions(child, before)


def _holds(node: ast.AST, line: int) -> bool:
    return bool(getattr(node, "lineno", 0) <= line <= getattr(node, "end_lineno", 0))


def _imported(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.Import):
        yield from ((alias.name, node) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield node.module or "", node


# Rules about size.


def long_function(module: Module) -> Iterator[Finding]:
    """A function's body has at most 40 lines, its docstring not counted."""
    for name, node in module.functions:
        body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
        lines = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
        if lines > 40:
            yield Finding(module.place(name), f"its body has {lines} lines, 40 are allowed")


_BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.comprehension, ast.match_case)


def complex_function(module: Module) -> Iterator[Finding]:
    """There are at most 10 ways through a function (McCabe; conditional expressions and comprehensions count)."""
    for name, node in module.functions:
        paths = 1 + sum(isinstance(child, _BRANCHES) for child in ast.walk(node))
        if paths > 10:
            yield Finding(module.place(name), f"its complexity is {paths}, 10 is allowed")


def many_parameters(module: Module) -> Iterator[Finding]:
    """A function takes at most 5 parameters, and at most two of them by position."""
    for name, node in module.functions:
        count = len(parameters(node))
        if count > 5:
            yield Finding(module.place(name), f"it takes {count} parameters, 5 are allowed")
        by_position = [arg for arg in [*node.args.posonlyargs, *node.args.args] if arg.arg not in ("self", "cls")]
        if len(by_position) > 2:
            found = ", ".join(arg.arg for arg in by_position)
            yield Finding(
                module.place(name), f"it takes {found} by position, two are allowed; the rest is keyword-only"
            )


def long_module(module: Module) -> Iterator[Finding]:
    """A module has at most 400 lines."""
    lines = len(module.source.splitlines())
    if lines > 400:
        yield Finding(module.place(), f"it has {lines} lines, 400 are allowed")


# Rules about the shape of functions and classes.


def boolean_parameter(module: Module) -> Iterator[Finding]:
    """No boolean picks an algorithm: that is two functions. One that is a fact is in the named list."""
    for name, node in module.functions:
        for arg, default in _defaults(node):
            kind = ast.unparse(arg.annotation) if arg.annotation else ""
            is_bool = isinstance(default, ast.Constant) and isinstance(default.value, bool)
            # A private function may be handed a fact; an option it has none.
            handed = _is_private(name) and default is None
            if is_bool or (re.search(r"\bbool\b", kind) and not handed):
                yield Finding(module.place(f"{name}({arg.arg})"), "a boolean parameter: make it two functions")


def _defaults(function: Function) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    spec = function.args
    by_position = [*spec.posonlyargs, *spec.args]
    missing: list[ast.expr | None] = [None] * (len(by_position) - len(spec.defaults))
    yield from zip(by_position, [*missing, *spec.defaults], strict=True)
    yield from zip(spec.kwonlyargs, spec.kw_defaults, strict=True)


_MUTABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


def mutable_default(module: Module) -> Iterator[Finding]:
    """No default that calls share."""
    for name, node in module.functions:
        for arg, default in _defaults(node):
            made = isinstance(default, ast.Call) and dotted(default.func).split(".")[-1] in _MAKERS
            if made or isinstance(default, _MUTABLE):
                yield Finding(module.place(f"{name}({arg.arg})"), "a default that every call shares")


_MAKERS = {"list", "dict", "set", "bytearray", "defaultdict", "array", "zeros", "ones", "empty"}


def open_keywords(module: Module) -> Iterator[Finding]:
    """A public function names its parameters: no **kwargs."""
    for name, node in module.functions:
        if node.args.kwarg is not None and not _is_private(name):
            yield Finding(module.place(name), f"**{node.args.kwarg.arg} in a public function: name the parameters")


def _is_private(name: str) -> bool:
    return any(re.match(r"_(?!_.*__$)", part) for part in name.split("."))


_MAY_INHERIT = {"Protocol", "Struct", "NamedTuple", "TypedDict", "Generic", "Module", "Function"}


def inheritance(module: Module) -> Iterator[Finding]:
    """Classes inherit from Protocol, msgspec.Struct and exceptions only."""
    for name, node in module.classes:
        for base in node.bases:
            spelled = dotted(base.value if isinstance(base, ast.Subscript) else base).split(".")[-1]
            if spelled not in _MAY_INHERIT and not _is_exception(spelled):
                yield Finding(module.place(name), f"it inherits from {spelled}: compose, or write a Protocol")


def _is_exception(name: str) -> bool:
    import builtins

    import relook.errors

    found = getattr(builtins, name, None) or getattr(relook.errors, name, None)
    return isinstance(found, type) and issubclass(found, BaseException)


def thawed_struct(module: Module) -> Iterator[Finding]:
    """Records are frozen."""
    for name, node in module.classes:
        is_struct = any(dotted(base).split(".")[-1] == "Struct" for base in node.bases)
        frozen = any(key.arg == "frozen" and ast.unparse(key.value) == "True" for key in node.keywords)
        if is_struct and not frozen:
            yield Finding(module.place(name), "a Struct that is not frozen")


def undocumented(module: Module) -> Iterator[Finding]:
    """Every module and public class, function and method says what it is; magic methods do by their name."""
    if not ast.get_docstring(module.tree):
        yield Finding(module.place(), "no docstring")
    inside = {name for name, _ in module.functions}
    for name, node in module.named:
        nested = any(name.startswith(f"{outer}.") for outer in inside)
        if nested or any(part.startswith("_") for part in name.split(".")):
            continue
        if isinstance(node, Function | ast.ClassDef) and not ast.get_docstring(node):
            yield Finding(module.place(name), "no docstring")


# Rules about names.

_FORBIDDEN = re.compile(
    r"(?:^|_)(?:utils?|helpers?)(?:_|$)|Utils?\b|Helpers?\b|Manager|Handler|^_*Base[A-Z]|[a-z]Base$|^_*(?:get|compute)_|^(?:data|info)$"
)
_OTHER_WORDS = re.compile(r"(?:^|_)(?:initial|noisy|original)_(?:labels?|class(?:es)?|counts?)(?:_|$)")


def forbidden_name(module: Module) -> Iterator[Finding]:
    """No utils, helpers, Manager, Handler, Base, get_, compute_, data, info; the label an item came with is `given`."""
    last = module.name.split(".")[-1]
    if _FORBIDDEN.search(last):
        yield Finding(module.place(), f"a module named {last}: name it after what it holds")
    for name, node in module.named:
        own = name.split(".")[-1]
        words = [own, *(arg.arg for arg in parameters(node))] if isinstance(node, Function) else [own]
        for word in words:
            if _FORBIDDEN.search(word):
                yield Finding(module.place(name), f"the name {word}: use the field's word")
            if _OTHER_WORDS.search(word):
                yield Finding(module.place(name), f"the name {word}: the label an item came with is `given`")


# Rules about state and chance.

_NUMPY_RANDOM = {"Generator", "default_rng", "SeedSequence", "BitGenerator", "PCG64", "Philox", "RandomState"}


def global_chance(module: Module) -> Iterator[Finding]:
    """Randomness is an argument: no np.random.* globals, no generator without a seed, no `random` module."""
    for name, node in module.imports():
        if name in ("random", "secrets"):
            yield Finding(module.around(node), f"import {name}: take a numpy Generator")
        if name == "numpy.random" and isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name not in _NUMPY_RANDOM:
                    yield Finding(module.around(node), f"numpy.random.{alias.name} is a global")
    for node in ast.walk(module.tree):
        spelled = re.match(r"(?:np|numpy)\.random\.(\w+)$", dotted(node))
        if spelled and spelled[1] not in _NUMPY_RANDOM:
            yield Finding(module.around(node), f"np.random.{spelled[1]} is a global: take a Generator")
    for called, node in module.calls():
        seeded = node.args or node.keywords
        if called.split(".")[-1] in ("default_rng", "RandomState", "SeedSequence") and not seeded:
            yield Finding(module.around(node), f"{called}() without a seed")


def global_statement(module: Module) -> Iterator[Finding]:
    """No global state."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Global):
            yield Finding(module.around(node), f"global {', '.join(node.names)}")


def printing(module: Module) -> Iterator[Finding]:
    """Only the command line talks."""
    if module.name.startswith("relook.cli"):
        return
    for called, node in module.calls():
        if called in ("print", "sys.stdout.write", "sys.stderr.write"):
            yield Finding(module.around(node), f"{called} in the library")


def clock(module: Module) -> Iterator[Finding]:
    """Time is an argument; the command line may look at the clock."""
    if module.name.startswith("relook.cli"):
        return
    for called, node in module.calls():
        if re.fullmatch(r"(?:time\.)?(?:time|time_ns)|(?:datetime\.)*(?:now|utcnow|today)", called):
            yield Finding(module.around(node), f"{called}(): time is an argument")


# Rules about files and imports.

_PICKLES = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
_LOADERS = {"np.load", "numpy.load"}


def pickles(module: Module) -> Iterator[Finding]:
    """No pickle in any dress: what is read cannot run."""
    for name, node in module.imports():
        if name.split(".")[0] in _PICKLES:
            yield Finding(module.around(node), f"import {name}: use npy, npz without objects, JSON or parquet")
    for called, node in module.calls():
        allowed = {key.arg: ast.unparse(key.value) for key in node.keywords}.get("allow_pickle")
        if (called in _LOADERS and allowed != "False") or allowed == "True":
            yield Finding(module.around(node), f"{called} without allow_pickle=False")
        if called in ("torch.load", "pd.read_pickle", "pandas.read_pickle"):
            yield Finding(module.around(node), f"{called} runs what it reads")


_NETWORK = {"ftplib", "http", "httpx", "requests", "socket", "socketserver", "urllib3", "aiohttp"}


def network(module: Module) -> Iterator[Finding]:
    """Nothing is fetched and nothing is sent."""
    for name, node in module.imports():
        if name.split(".")[0] in _NETWORK or name == "urllib.request":
            yield Finding(module.around(node), f"import {name}: relook does not use the network")


_LIGHT = {"msgspec", "numpy", "relook"}
_LIGHT_IN = {
    "relook.cli": {"typer"},
    "relook.train.kernels": {"triton"},  # loaded by relook.train.norms in its functions
    "relook.train": {"torch", "safetensors"},
    "relook.store": {"alembic", "sqlalchemy"},
}


def heavy_import(module: Module) -> Iterator[Finding]:
    """A module starts on the standard library, numpy and msgspec (typer in cli); all else is imported at its use."""
    own = next((names for part, names in _LIGHT_IN.items() if module.name.startswith(part)), set[str]())
    for name, node in _at_start(module.tree):
        top = name.split(".")[0]
        if top not in _LIGHT | own and top not in sys.stdlib_module_names:
            yield Finding(module.place(), f"line {getattr(node, 'lineno', 0)} imports {name} when the module is loaded")


def _at_start(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.Lambda):
            continue
        if isinstance(child, ast.If) and dotted(child.test).endswith("TYPE_CHECKING"):
            yield from (found for other in child.orelse for found in [*_imported(other), *_at_start(other)])
            continue
        yield from _imported(child)
        yield from _at_start(child)


ONLY_IN: Mapping[str, tuple[str, ...]] = {
    "matplotlib": ("relook.plots",),
    "sklearn": ("relook.selectors", "relook.datasets.digits"),
    "alembic": ("relook.store",),
    "psycopg": ("relook.store",),
    "sqlalchemy": ("relook.store",),
    "torch": ("relook.train",),
    "typer": ("relook.cli",),
    "rich": ("relook.cli",),
}
"""Packages that one part of relook uses, so that the others can do without."""


def misplaced_import(module: Module) -> Iterator[Finding]:
    """A package that belongs to one part is imported nowhere else."""
    for name, node in module.imports():
        owners = ONLY_IN.get(name.split(".")[0])
        if owners and not any(module.name == owner or module.name.startswith(f"{owner}.") for owner in owners):
            yield Finding(module.around(node), f"import {name}: that belongs to {' and '.join(owners)}")


# Rules about comments.


def open_todo(module: Module) -> Iterator[Finding]:
    """What is left to do has an issue with a number."""
    for token in tokenize.generate_tokens(io.StringIO(module.source).readline):
        left = re.search(r"\b(?:TODO|FIXME|XXX|HACK)\b(?!.*#\d+)", token.string)
        if token.type == tokenize.COMMENT and left:
            yield Finding(module.place(), f"line {token.start[0]}: {left[0]} without the number of an issue")


RULES: Mapping[str, Rule] = {
    rule.__name__: rule
    for rule in (
        long_function,
        complex_function,
        many_parameters,
        long_module,
        boolean_parameter,
        mutable_default,
        open_keywords,
        inheritance,
        thawed_struct,
        undocumented,
        forbidden_name,
        global_chance,
        global_statement,
        printing,
        clock,
        pickles,
        network,
        heavy_import,
        misplaced_import,
        open_todo,
    )
}

WORKPLACES = re.compile(r"/(?:work|root)/|/tmp/[w]\b|/(?:home|Users)/\w+/")
"""Paths that name somebody's machine: no file of the repository may hold one. (The brackets keep this line out.)"""
