"""From the text of a job to its fields and arrays: pure, so that it can be done here or in a clerk."""

import functools
import reprlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from app.http.refusal import Refusal
from app.intake.asked import parse_request, word_of
from app.intake.json_arrays import array_from_lists
from app.intake.json_bytes import array_from_bytes, is_packed
from app.intake.json_ragged import is_ragged, ragged_from_lists
from kernels import FORBIDDEN, SOLVERS, InvalidProblem, Solver
from workers.store.reference import CSR_PARTS


@dataclass(slots=True)  # nobody changes one; frozen, it takes three times as long to make
class Document:
    """What a text says.

    Attributes:
        around: everything but the inputs, as it came.
        request: the same, checked.
        inputs: by name an array, a reference as it came, or {"csr": ...} of such.
    """

    around: Mapping[str, Any]
    request: Any
    inputs: Mapping[str, Any]


def read_document(text: bytes, parts: Collection[str], max_elements: int) -> Document:
    """From text to a document; `parts` names the file parts that came beside it.

    Raises:
        Refusal, Invalid, InvalidProblem: what is wrong with it.
    """
    found = parse_json(text, "Part 'job'" if parts else "The body")
    request = parse_request(found)
    card = SOLVERS[request.solver]
    named = _with_parts(found.get("inputs"), card, parts)
    inputs: dict[str, Any] = {}
    for name, value in named.items():
        inputs |= _Lists(card, request, name, max_elements).inputs(value, named)
    return Document({name: value for name, value in found.items() if name != "inputs"}, request, inputs)


def _with_parts(given: Any, card: Solver, parts: Collection[str]) -> dict[str, Any]:
    """`inputs` with each file part of an input's name put in, after checking the names."""
    given = {} if given is None else given
    if not isinstance(given, dict):
        raise InvalidProblem("inputs", f"is {word_of(given)}; expected an object of inputs by name")
    known = _known(card.name)
    for name in given:
        if name not in known:
            raise InvalidProblem(f"inputs.{name:.60}", f"is unknown; {allowed_inputs(card)}")
    values = {name: value for name, value in given.items() if value is not None}
    for name in parts:
        if name in known:
            if name in values and values[name] != {"part": name}:
                raise InvalidProblem(f"inputs.{name}", "is given twice, in inputs and as a file part")
            values[name] = {"part": name}
    return values


@functools.cache
def _known(solver: str) -> frozenset[str]:
    """The names of all that a solver takes."""
    return frozenset({*SOLVERS[solver].specs, *SOLVERS[solver].files})


def allowed_inputs(card: Solver) -> str:
    """What a solver takes, as the end of a sentence."""
    names = [spec.name + ("" if spec.required else " (optional)") for spec in card.inputs]
    also = "".join(f"; a {bundle.kind} goes into {bundle.name}" for bundle in card.bundles)
    return f"the inputs of {card.name} are {', '.join(names)}{also}"


class _Lists:
    """Turns the lists of one input into arrays."""

    def __init__(self, card: Solver, request: Any, name: str, max_elements: int) -> None:
        self._spec = card.specs.get(name)
        self._name, self._solver, self._max_elements = name, card.name, max_elements
        maximize = bool(getattr(request.options, "maximize", False))
        self._forbidden = card.forbidden(name, maximize) if self._spec else None

    def inputs(self, value: Any, named: Mapping[str, Any]) -> dict[str, Any]:
        """The input by its name; matrices of different sizes are two, their entries and their sizes."""
        plain = value["data"] if isinstance(value, dict) and set(value) == {"data"} else value
        kind, told = (self._spec.ragged, self._spec.sizes) if self._spec else ("", "")
        if not is_ragged(plain, kind):
            return {self._name: self.lifted(value)}
        field = f"inputs.{self._name}" + ("" if plain is value else ".data")
        integer = FORBIDDEN if self._spec and self._spec.masked else None
        forbidden = self._forbidden if kind == "matrices" else None
        flat, sizes = ragged_from_lists(field, plain, kind, forbidden, self._max_elements, integer)
        if sizes is None:
            return {self._name: flat}
        if told in named:
            raise InvalidProblem(
                f"inputs.{told}", f"is given beside a list in {self._name}, which says the sizes itself"
            )
        return {self._name: flat, told: sizes}

    def lifted(self, value: Any) -> Any:
        """The input with arrays for lists."""
        field = f"inputs.{self._name}"
        if self._spec is None:
            return value  # a file: the next station looks at it
        integer = FORBIDDEN if self._spec.masked else None
        if _refers(value):
            if set(value) == {"data"}:
                return self._array(f"{field}.data", value["data"], self._forbidden, integer)
            if set(value) != {"csr"}:
                return value
            if not self._spec.sparse:
                raise InvalidProblem(field, f"is sparse; {self._solver} takes a dense {self._name}")
            return {"csr": self._csr(f"{field}.csr", value["csr"])}
        return self._array(field, value, self._forbidden, integer)

    def _csr(self, field: str, given: Any) -> dict[str, Any]:
        """A sparse matrix in its three arrays, each inline or a reference."""
        if not isinstance(given, dict) or set(given) != {*CSR_PARTS, "shape"}:
            raise InvalidProblem(field, "expected an object with exactly indptr, indices, values and shape")
        shape = given["shape"]
        if not isinstance(shape, list) or len(shape) != 2 or any(type(extent) is not int for extent in shape):
            raise InvalidProblem(f"{field}.shape", f"is {reprlib.repr(shape)}; expected [n_rows, n_cols]")
        arrays = {
            part: given[part] if _refers(given[part]) else self._array(f"{field}.{part}", given[part])
            for part in CSR_PARTS
        }
        return {**arrays, "shape": shape}

    def _array(self, field: str, data: Any, forbidden: float | None = None, integer: int | None = None) -> Any:
        """Null forbids an entry of a matrix, and keeps integers exact where the solver takes such a mask."""
        if is_packed(data):
            return array_from_bytes(field, data, self._max_elements)
        flat = self._spec is not None and self._spec.ragged == "matrices"
        matrix = isinstance(data, list) and bool(data) and (flat or isinstance(data[0], list))
        forbidden, integer = (forbidden, integer) if matrix else (None, None)
        return array_from_lists(field, data, forbidden, self._max_elements, integer)


def _refers(value: Any) -> bool:
    return isinstance(value, dict) and not is_packed(value)


def parse_json(text: bytes, where: str = "The body") -> Any:
    """Parse JSON; raises 400 with the place of the fault. NaN and Infinity pass, so that they can be named later."""
    if not text.strip():
        raise Refusal(400, f"{where} is empty; expected a JSON document.")
    try:
        return from_json(text, allow_inf_nan=True, cache_strings="keys")
    except ValueError as wrong:
        raise Refusal(400, f"{where} is not JSON: {wrong}.") from None
