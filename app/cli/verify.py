"""`allot verify ANSWER PROBLEM...`: check a stored answer against its problem with slow, exact arithmetic.

The arithmetic is that of kernels/certificates/exact: whole numbers and 60 decimal digits, shared with no solver and
with none of the certificates that answer jobs.
"""

import json
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from allot_client.files import Wanted, is_table, read_job
from allot_client.tables import UnreadableTable

from app.cli.answer_file import arrays_of, claim_of, document_of, object_of, once
from app.cli.as_sent import as_kept, as_points_sent, digest_in, is_stated, widened
from app.cli.solve import check_names, read_inputs, read_other
from app.intake.json_arrays import array_from_lists
from app.intake.json_bytes import array_from_bytes, is_packed
from app.intake.json_ragged import is_ragged, is_series, one_after_the_other, ragged_from_lists
from kernels import FORBIDDEN, SOLVERS, Array, Csr, InvalidProblem, Statement, recheck
from workers.store.codec import Form, InvalidUpload, decode
from workers.store.digests import digest_of, digest_of_file
from workers.store.layouts import BRAIN
from workers.store.reference import form_of

MARKS = {True: "yes", False: "NO", None: "cannot tell"}
LONGEST = 1 << 31
STARTS = {name for card in SOLVERS.values() for name in card.warm_start.values()}
CSR_PARTS = ("indptr", "indices", "values")
UNREADABLE = (LookupError, ValueError, TypeError, AttributeError, AssertionError, ArithmeticError, RecursionError)
"""What comes of an answer that is put together in another way than answers are."""
Sources = dict[str, Path]
"""The file that an input came from, whole."""


def verify_file(args: Namespace) -> int:
    """Run the command; 0 when every statement holds, 1 when one does not or cannot be told, 2 for wrong input."""
    try:
        document = document_of(args.answer)
        inputs, options, sources = _problem(args.problem, document)
        check_names(inputs, SOLVERS[document["solver"]])
        inputs = as_points_sent(document, inputs)
        given = _given_options(args.option)
        options = _read_options(document, {**options, **given})
        claim = claim_of(document, arrays_of(document, args.arrays))
        statements = [*digests(document.get("input_digests") or {}, inputs, sources)]
        statements += _other_options(args.problem, document, given)
        statements += recheck(document["solver"], inputs, options, claim)
        statements += _of_the_proof(document, options)
    except (InvalidProblem, InvalidUpload, UnreadableTable) as wrong:
        print(f"allot: {wrong}")
        return 2
    except UNREADABLE as wrong:
        print(f"allot: {args.answer} does not fit this problem: {type(wrong).__name__}: {wrong}")
        return 2
    print(f"{document['solver']}: {claim.termination}, objective {claim.objective}, bound {claim.bound}")
    for one in statements:
        print(f"  {MARKS[one.holds]:<11}  {one.name:<16} {one.words}")
    held = sum(one.holds is True for one in statements)
    print(f"{held} of {len(statements)} statements hold")
    return 0 if held == len(statements) else 1


def _problem(given: list[str], document: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], Sources]:
    """Inputs by name, options, and the files: `name=file`, one file, or the JSON that was posted."""
    inputs: dict[str, Any] = {}
    options = dict(object_of("options", document))
    sources: Sources = {}
    if any(map(_is_table, given)):  # read together, as they were for the answer: a workbook may hold all inputs
        wanted = Wanted(document["solver"], options)
        return dict(read_job(given, wanted, read_other).inputs), options, sources
    for text in given:
        name, equals, file = text.partition("=")
        path = Path(file if equals else text)
        if path.suffix == ".json":
            posted = json.loads(path.read_text(), object_pairs_hook=once)
            options = {**(posted.get("options") or {}), **options}
            for key, value in posted["inputs"].items():
                inputs |= _listed(key, value, document, options)
        elif equals and (several := _several(name, path, document)):
            inputs |= several
        elif equals:
            reference = (document.get("input_digests") or {}).get(name)
            inputs[name] = _read(name, path, reference if isinstance(reference, dict) else {})
            sources[name] = path
        else:
            found = read_inputs(path, SOLVERS[document["solver"]])
            inputs |= found
            sources |= dict.fromkeys(found, path)
    return inputs, options, sources


def _other_options(problem: list[str], document: dict[str, Any], given: dict[str, Any]) -> Iterator[Statement]:
    """Options of a posted job, or their defaults, in whose place the answer says that it was given for others."""
    posted = [json.loads(Path(text).read_text()) for text in problem if "=" not in text and text.endswith(".json")]
    if not posted or document.get("options") is None:
        return
    kind = SOLVERS[document["solver"]].options
    asked, had = (
        kind.model_validate({**(one.get("options") or {}), **given}).model_dump(mode="json")
        for one in (posted[-1], document)
    )
    for name, value in asked.items():
        if had[name] != value:
            words = f"is {json.dumps(value):.80} in the job, the answer was given for {json.dumps(had[name]):.80}"
            yield Statement(f"option {name}", False, words)


def _of_the_proof(document: Mapping[str, Any], options: Mapping[str, Any]) -> Iterator[Statement]:
    """What `holds` and `verified` say where it cannot be so.

    `verified` belongs to the words optimal and infeasible, and to a certificate whose facts do not deny it. `holds` is
    null where no certificate was asked for.
    """
    certificate = document["certificate"]
    holds, verified = certificate.get("holds"), certificate.get("verified")
    if holds is False:
        yield Statement("holds", False, "the certificate says that this is no answer")
    elif holds is not True and "holds" in certificate and not (holds is None and options.get("certificate") == "none"):
        yield Statement("holds", False, f"{json.dumps(holds):.80} is stated, which says nothing of an answer")
    earns = document["termination"] in ("optimal", "infeasible") and holds is True
    earns &= (certificate.get("facts") or {}).get("verified") is not False
    if not (verified is None or verified is False or (verified is True and earns)):
        words = f"{verified} is stated of an answer that is {document['termination']}, and its proof does not say so"
        yield Statement("verified", False, words)


def _is_table(text: str) -> bool:
    """Whether an argument, NAME=FILE or FILE.xlsx:SHEET or FILE, is read as a table."""
    return any(is_table(Path(part)) for part in (text, text.rpartition(":")[0]))


def _read(name: str, path: Path, reference: Mapping[str, Any]) -> Array | Csr:
    """One input from its file, read as the job read it where the bytes do not say how."""
    form = Form(filename=path.name)
    if reference.get("format") == "raw" or _widened(reference):
        form = replace(form_of(name, reference), filename=path.name)
    value, member = decode(path, form, field=name), reference.get("member") or name
    if not isinstance(value, dict):
        return value
    if member not in value:
        raise InvalidProblem(name, f"is not in the file, which holds {', '.join(value)}; expected {member}")
    return value[member]


def _widened(reference: Mapping[str, Any]) -> bool:
    """Whether the numbers that were solved have another type than those that came."""
    return "scale" in reference or reference.get("dtype") == BRAIN


def _several(name: str, path: Path, document: Mapping[str, Any]) -> dict[str, Any]:
    """Matrices of different sizes in one file, as a job takes them; nothing where it is no such file."""
    spec = SOLVERS[document["solver"]].specs.get(name)
    if spec is None or spec.ragged != "matrices" or path.suffix != ".npz":
        return {}
    value = decode(path, Form(filename=path.name), field=name)
    if not isinstance(value, dict) or not is_series(value):
        return {}
    flat, sizes = one_after_the_other(name, value)
    return {name: flat, spec.sizes: sizes}


def _listed(name: str, value: Any, document: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """An input as it is written in a posted job."""
    if isinstance(value, dict) and "csr" in value:
        indptr, indices, values = (_numbers(name, value["csr"][part], None) for part in CSR_PARTS)
        n_rows, n_cols = value["csr"]["shape"]
        return {name: Csr(indptr, indices, values, (n_rows, n_cols))}
    data = value["data"] if isinstance(value, dict) and not is_packed(value) else value
    card = SOLVERS[document["solver"]]
    if name not in card.specs:
        raise InvalidProblem(f"inputs.{name}", f"is no input of {card.name}")
    spec = card.specs[name]
    integer, forbidden = FORBIDDEN if spec.masked else None, card.forbidden(name, bool(options.get("maximize")))
    if is_ragged(data, spec.ragged):
        flat, sizes = ragged_from_lists(name, data, spec.ragged, forbidden, LONGEST, integer)
        return {name: flat} if sizes is None else {name: flat, spec.sizes: sizes}
    return {name: _numbers(name, data, forbidden, integer)}


def _numbers(name: str, data: Any, forbidden: float | None, integer: int | None = None) -> Array:
    if is_packed(data):
        return array_from_bytes(name, data, LONGEST)
    return array_from_lists(name, data, forbidden, LONGEST, integer)


def _read_options(document: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Options as a job's are read, so that "false" is not true. Raises ValueError where one is none."""
    read = SOLVERS[document["solver"]].options.model_validate(given)
    found: dict[str, Any] = read.model_dump(mode="json", exclude_unset=True)
    return found


def _given_options(pairs: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise InvalidProblem(f"--option {pair}", "is not NAME=VALUE")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found


def digests(stated: Mapping[str, Any], inputs: Mapping[str, Any], sources: Sources) -> Iterator[Statement]:
    """Whether the inputs are those that the answer was given for, by their bytes and how these are read."""
    for name, reference in stated.items():
        if name in STARTS and name not in inputs:
            yield Statement(f"input {name}", True, "is where the solver started, and nothing here rests on it")
            continue
        if name not in inputs:
            yield Statement(f"input {name}", False, "the answer was given for one, and it is not here")
            continue
        yield from _same(f"input {name}", reference, inputs[name], sources.get(name))
    for name in inputs.keys() - stated.keys() if stated else ():
        yield Statement(f"input {name}", False, "the answer was given without one")


def _same(name: str, reference: Any, value: Array | Csr, path: Path | None) -> Iterator[Statement]:
    parts = reference.get("csr", reference) if isinstance(reference, dict) else reference
    if isinstance(value, Csr) and isinstance(parts, dict) and "indptr" in parts:
        for part in CSR_PARTS:
            yield from _same(f"{name}.{part}", parts[part], getattr(value, part), None)
        return
    digest, form = (reference, {}) if isinstance(reference, str) else (digest_in(reference), reference)
    ours = [digest_of_file(path, digest)] if path is not None else []
    if isinstance(value, np.ndarray):
        ours.append(digest_of(as_kept(value), digest))
        if is_stated(wide := widened(value, form), digest):
            value, ours = wide, [*ours, str(digest)]
    told = {"dtype": str(value.dtype), "shape": list(value.shape)} if isinstance(value, np.ndarray) else {}
    if _widened(form):  # whoever read the file held its type against the reference
        told.pop("dtype", None)
    other = next((key for key in told if form.get(key) not in (None, told[key])), None)
    if digest not in ours:
        yield Statement(name, False, f"has the digest {ours[0]}, the answer was given for {digest}")
    elif other is not None:
        yield Statement(name, False, f"has {other} {told[other]}, the answer was given for {form[other]}")
    else:
        yield Statement(name, True, f"is {digest}")
