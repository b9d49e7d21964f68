"""A stored answer, as `allot verify` reads it: whoever edited it may have left anything in it.

What two readers could take for different things is refused: a name that stands twice, a number that is a text.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kernels import SOLVERS, Array, Claim, InvalidProblem
from workers.store.codec import Form, decode

NUMBERS = ("bound", "gap_abs", "gap_rel", "max_violation")
GROUPS = {group for card in SOLVERS.values() for group in card.groups.values()}


def document_of(path: Path) -> dict[str, Any]:
    """The document of a file. Raises InvalidProblem where it is none."""
    try:
        document = json.loads(path.read_text(), object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        expected = "expected the answer as `--out answer.json` writes it, or as `--json` prints it"
        raise InvalidProblem(str(path), f"is no JSON ({error}); {expected}") from error
    needed = ("solver", "termination", "objective", "certificate")
    if not isinstance(document, dict) or any(name not in document for name in needed):
        raise InvalidProblem(str(path), f"is no result; expected an object with {', '.join(needed)}")
    if not isinstance(document["certificate"], dict):
        raise InvalidProblem(str(path), "has no certificate that is an object")
    if not isinstance(document["solver"], str) or document["solver"] not in SOLVERS:
        raise InvalidProblem(
            str(path), f"names the solver {document['solver']!r}; expected one of {', '.join(SOLVERS)}"
        )
    return document


def claim_of(document: Mapping[str, Any], arrays: Mapping[str, Array]) -> Claim:
    """What a result document claims. Raises ValueError where a number that it states is none."""
    certificate = document["certificate"]
    facts = {**object_of("facts", document), **object_of("facts", certificate)}
    bound, gap_abs, gap_rel, violation = (certificate.get(name) for name in NUMBERS)
    for stated in (document["objective"], bound, gap_abs, gap_rel, violation):
        if not (stated is None or type(stated) is int or (type(stated) is float and math.isfinite(stated))):
            raise ValueError(f"it states {stated!r:.80}, which is no number")
    sentence = certificate.get("proved")
    if not (sentence is None or isinstance(sentence, str)):
        raise ValueError(f"its sentence is {sentence!r:.80}, which is none")
    word, objective = document["termination"], document["objective"]
    return Claim(word, objective, bound, gap_abs, gap_rel, violation, arrays, facts, sentence or "")


def object_of(name: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """What stands under a name, nothing where nothing does. Raises ValueError where it is no object."""
    found = document.get(name)
    if not (found is None or isinstance(found, dict)):
        raise ValueError(f"its {name} are {found!r:.80}; expected an object")
    return found or {}


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Of a name that stands there twice one reader takes the first, another the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r:.80} stands there twice")
    return found


def arrays_of(document: Mapping[str, Any], beside: Path | None) -> dict[str, Array]:
    """The answer's arrays: those of the npz, and those that stand in the document."""
    found: dict[str, Array] = {}
    if beside is not None:
        decoded = decode(beside, Form(format="npz"), field=str(beside))
        found = dict(decoded) if isinstance(decoded, dict) else {beside.stem: decoded}  # type: ignore[dict-item]
        texts = [name for name, one in found.items() if isinstance(one, np.ndarray) and one.dtype.kind not in "biuf"]
        if texts:
            raise ValueError(f"{texts[0]} holds {found[texts[0]].dtype}; expected numbers")
    shown = {name: value for name, value in document.items() if name not in GROUPS}
    for group in GROUPS:
        shown |= document.get(group) or {}
    for name, value in shown.items():
        if name in found:
            continue
        if isinstance(value, dict) and "blob" in value:
            raise InvalidProblem(name, "is not in the document; expected --arrays with the result as npz")
        if isinstance(value, list):
            found[name] = _array(name, value)
    return found


def _array(name: str, value: list[Any]) -> Array:
    """Numbers, or words of logic. Raises ValueError where they are mixed, as in a plan of `true` and `{}`."""
    kinds: set[type] = set()
    found = np.array(_with_nan(value, kinds))
    if found.dtype.kind == "O" or (len(kinds) > 1 and not kinds <= {int, float}):
        raise ValueError(f"{name} holds {', '.join(sorted(kind.__name__ for kind in kinds))}; expected numbers")
    return found


def _with_nan(value: Any, kinds: set[type]) -> Any:
    """Lists with NaN for null, which says in a potential that a line has no mass; the types of what is in them."""
    if isinstance(value, list):
        return [_with_nan(one, kinds) for one in value]
    value = math.nan if value is None else value
    kinds.add(type(value))
    return value
