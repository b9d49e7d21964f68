"""Renders the chart in deploy/helm as far as its templates go: the few actions and functions of Go templates that they
use. `helm template` is the judge where it is installed; this finds slips of the pen everywhere else."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parent.parent / "deploy/helm/allot"
ACTION = re.compile(r"\{\{(-?)\s*(.*?)\s*(-?)\}\}", re.S)
WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\(|\)|\||:=|[^\s()|]+')
Node = tuple[str, Any, list[Any], list[Any]]


def _nindent(count: int, text: Any) -> str:
    return "\n" + "\n".join(" " * count + line if line else "" for line in str(text).splitlines())


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "quote": lambda value: json.dumps(str(value)),
    "nindent": _nindent,
    "toYaml": lambda value: yaml.safe_dump(value, default_flow_style=False).rstrip("\n").removesuffix("\n..."),
    "default": lambda instead, value: value or instead,
    "printf": lambda text, *values: text % values,
    "eq": lambda one, other: one == other,
    "not": lambda value: not value,
    "add": lambda *values: sum(map(int, values)),
    "div": lambda one, other: int(one) // int(other),
    "int": int,
    "int64": int,
    "and": lambda *values: next((one for one in values if not one), values[-1]),
    "list": lambda *values: list(values),
    "index": lambda value, key: value[key],
}


class Chart:
    """The chart with some values set over its own."""

    def __init__(self, **changes: Any) -> None:
        values = _merged(yaml.safe_load((CHART / "values.yaml").read_text()), changes)
        about = yaml.safe_load((CHART / "Chart.yaml").read_text())
        release = {"Name": "one", "Namespace": "here", "Service": "Helm"}
        self.root = {"Values": values, "Release": release, "Chart": {"AppVersion": about["appVersion"]}}
        self.defined: dict[str, list[Any]] = {}
        self._text((CHART / "templates/_helpers.tpl").read_text())

    def documents(self, name: str) -> list[dict[str, Any]]:
        """What a template renders to."""
        return [one for one in yaml.safe_load_all(self._text((CHART / "templates" / name).read_text())) if one]

    def all(self) -> list[dict[str, Any]]:
        """Every object of the chart."""
        return [one for path in sorted((CHART / "templates").glob("*.yaml")) for one in self.documents(path.name)]

    def _text(self, text: str) -> str:
        nodes, rest = _tree(list(_tokens(text)))
        assert not rest, f"an end too many: {rest[0]}"
        return "".join(self._render(nodes, self.root, {"$": self.root}))

    def _render(self, nodes: list[Any], dot: Any, names: dict[str, Any]) -> Iterator[str]:
        for node in nodes:
            if isinstance(node, str):
                yield node
                continue
            kind, words, body, other = node
            if kind == "define":
                self.defined[json.loads(words[0])] = body
            elif kind == "if":
                yield from self._render(body if self._value(words, dot, names) else other, dot, names)
            elif kind == "range":
                yield from self._range(words, body, dot, names)
            elif len(words) > 2 and words[1] == ":=":
                names[words[0]] = self._value(words[2:], dot, names)
            else:
                yield str(self._value(words, dot, names))

    def _range(self, words: list[str], body: list[Any], dot: Any, names: dict[str, Any]) -> Iterator[str]:
        at = words.index(":=")
        variables = [word.strip(",") for word in words[:at]]
        over = self._value(words[at + 1 :], dot, names)
        for item in over.items() if isinstance(over, Mapping) else ((one,) for one in over):
            yield from self._render(body, dot, names | dict(zip(variables, item, strict=True)))

    def _value(self, words: list[str], dot: Any, names: dict[str, Any]) -> Any:
        """A pipeline: each command's value is the last argument of the next."""
        piped: list[Any] = []
        for command in _split(words):
            function, *arguments = (self._word(word, dot, names) for word in command)
            arguments += piped
            piped = [function(*arguments) if callable(function) else function]
        return piped[0]

    def _word(self, word: Any, dot: Any, names: dict[str, Any]) -> Any:
        if isinstance(word, list):
            return self._value(word, dot, names)
        if word.startswith('"'):
            return json.loads(word)
        if re.fullmatch(r"\d+", word):
            return int(word)
        if word == "include":
            return lambda name, of: "".join(self._render(self.defined[name], of, {"$": of})).strip("\n")
        if word[0] in ".$":
            name, *path = word.split(".")
            found = names[name] if name else dot
            for part in filter(None, path):
                found = found[part]
            return found
        return FUNCTIONS[word]


def _merged(base: Any, changes: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(changes, dict):
        return changes
    return base | {name: _merged(base.get(name), value) for name, value in changes.items()}


def _tokens(text: str) -> Iterator[str | list[str]]:
    """Texts and actions in turn; a hyphen in an action's brace eats the white space beside it."""
    at, eat = 0, False
    for found in ACTION.finditer(text):
        before = text[at : found.start()]
        before = before.lstrip() if eat else before
        yield before.rstrip() if found[1] else before
        if not found[2].startswith("/*"):
            yield WORD.findall(found[2])
        at, eat = found.end(), bool(found[3])
    yield text[at:].lstrip() if eat else text[at:]


def _tree(tokens: list[Any]) -> tuple[list[Any], list[Any]]:
    """Nodes up to the `else` or `end` that closes them, and the tokens from there on."""
    nodes: list[Any] = []
    while tokens:
        token = tokens.pop(0)
        if isinstance(token, str):
            nodes.append(token)
        elif token[0] in ("else", "end"):
            return nodes, [token, *tokens]
        elif token[0] in ("if", "range", "define"):
            body, tokens = _tree(tokens)
            other: list[Any] = []
            if tokens.pop(0) == ["else"]:
                other, tokens = _tree(tokens)
                assert tokens.pop(0) == ["end"]
            nodes.append((token[0], token[1:], body, other))
        else:
            nodes.append(("action", token, [], []))
    return nodes, []


def _split(words: list[str]) -> list[list[Any]]:
    """Commands between bars; what stands in parentheses is a word of its own."""
    commands: list[list[Any]] = [[]]
    depth: list[list[list[Any]]] = []
    for word in words:
        if word == "(":
            depth.append(commands)
            commands = [[]]
        elif word == ")":
            inner: list[Any] = []
            for k, command in enumerate(commands):
                inner += ["|", *command] if k else command
            commands = depth.pop()
            commands[-1].append(inner)
        elif word == "|":
            commands.append([])
        else:
            commands[-1].append(word)
    return commands
