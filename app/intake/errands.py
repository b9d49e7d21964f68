"""What a clerk does, as pure functions of an errand: reading what strangers sent.

document   text of a job           -> its fields, and arrays for its lists
read       an upload               -> what it holds
outline    an upload               -> dtype and shape where its first bytes say them
weigh      inputs and options      -> device, and estimates where they are wanted
preview    a file                  -> what it holds, as a file of JSON with marks in the place of arrays
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from pydantic_core import to_json

from app.http.refusal import Refusal
from app.intake.document import read_document
from app.intake.weighing import Question, weigh
from app.web.shown import arrays, is_written, written
from kernels import SOLVERS, Array, Csr
from workers.jobs.job import WorkerInfo
from workers.store import codec, handles
from workers.store.outline import outline
from workers.store.unpack import Scratch

LONGEST_AROUND = 1 << 20
"""Of a job's fields beside its inputs."""
BYTES_PER_S = 8 << 20
"""One may take one more second for so many bytes."""
MARKS = {b"[": 72, b",": 40, b'"': 32, b"{": 200}
"""Bytes that a parsed document takes at least, by what it holds."""
Charge = Callable[[int], object]


def run(errand: Mapping[str, Any], charge: Charge) -> dict[str, Any]:
    """Do one errand. Raises what is wrong with the bytes."""
    folder, prefix = Path(errand["scratch"]).parent, Path(errand["scratch"]).name
    return KINDS[errand["do"]](errand, folder, Scratch(prefix, charge, kept=True))


def _document(errand: Mapping[str, Any], folder: Path, scratch: Scratch) -> dict[str, Any]:
    text = Path(errand["path"]).read_bytes()
    if sum(size * text.count(mark) for mark, size in MARKS.items()) > errand["memory_bytes"] + 4 * len(text):
        raise MemoryError  # before it is taken: not every parser outlives it
    found = read_document(text, errand["parts"], errand["max_elements"])
    around = json.dumps(found.around)
    if len(around) > LONGEST_AROUND:
        raise Refusal(413, f"The fields beside `inputs` take more than {LONGEST_AROUND} bytes.")
    inputs = {name: _handed(value, folder, scratch) for name, value in found.inputs.items()}
    return {"around": found.around, "inputs": inputs}


def _handed(value: Any, folder: Path, scratch: Scratch) -> Any:
    """An input of a document with handles for arrays."""
    if isinstance(value, np.ndarray):
        return {"handle": handles.hand(value, folder, scratch)}
    if isinstance(value, dict) and isinstance(value.get("csr"), dict):
        return {"csr": {name: _handed(part, folder, scratch) for name, part in value["csr"].items()}}
    return value


def picked_up(value: Any, max_elements: int) -> Any:
    """The other way round, for the process that asked."""
    if isinstance(value, dict) and "handle" in value:
        return handles.take(value["handle"], max_elements)
    if isinstance(value, dict) and isinstance(value.get("csr"), dict):
        return {"csr": {name: picked_up(part, max_elements) for name, part in value["csr"].items()}}
    return value


def form_told(form: codec.Form) -> dict[str, Any]:
    """A form as JSON."""
    return asdict(form)


def form_heard(told: Mapping[str, Any]) -> codec.Form:
    """The other way round."""
    shape = told["shape"]
    return codec.Form(**{**told, "shape": None if shape is None else tuple(shape)})


def _read(errand: Mapping[str, Any], folder: Path, scratch: Scratch) -> dict[str, Any]:
    path, form = Path(errand["path"]), form_heard(errand["form"])
    limits = codec.Limits(errand["max_bytes"], errand["max_elements"])
    return handles.told_of(codec.read(path, form, errand["field"], limits, scratch), folder, scratch)


def _outline(errand: Mapping[str, Any], folder: Path, scratch: Scratch) -> dict[str, Any]:
    seen = outline(Path(errand["path"]), form_heard(errand["form"]), errand["max_elements"])
    return {"outline": None if seen is None else [seen[0].str, list(seen[1])]}


def _weigh(errand: Mapping[str, Any], folder: Path, scratch: Scratch) -> dict[str, Any]:
    card = SOLVERS[errand["solver"]]
    question = Question(
        card=card,
        inputs={name: handles.single(handle) for name, handle in errand["inputs"].items()},
        options=card.options.model_validate_json(json.dumps(errand["options"])),
        texts=errand["texts"],
        asked=errand["asked"],
        workers=[WorkerInfo(**worker) for worker in errand["workers"]],
        limit_s=errand["limit_s"],
        outlined=errand["outlined"],
    )
    return weigh(question, lambda entries: scratch.charge(8 * entries)).told()


def _preview(errand: Mapping[str, Any], folder: Path, scratch: Scratch) -> dict[str, Any]:
    path, filename, kept = Path(errand["path"]), errand["filename"], list[handles.Handle]()

    def keep(array: Array | Csr) -> str:
        kept.append(handles.hand(array, folder, scratch))
        return f"{errand['mark']}:{len(kept) - 1}"

    if is_written(path, filename):
        missing = {"zero": 0.0, "inf": math.inf, "-inf": -math.inf}[errand["missing"]]
        sheets = written(keep, path, filename, missing, scratch.charge, errand.get("doubtful", ""))
    else:
        limits = codec.Limits(errand["max_bytes"], errand["max_elements"])
        form = codec.Form(filename=filename)
        sheets = arrays(keep, codec.read(path, form, "file", limits, scratch).value, filename)
    told = {"filename": filename, "bytes": path.stat().st_size, "sheets": sheets}
    text = to_json(told, inf_nan_mode="null", fallback=lambda numpy: numpy.tolist())
    scratch.charge(len(text))
    shown = Path(f"{errand['scratch']}shown")
    shown.write_bytes(text)
    return {"shown": str(shown), "arrays": kept}


KINDS = {"preview": _preview, "document": _document, "read": _read, "outline": _outline, "weigh": _weigh}
