"""The page of every call: from the OpenAPI document, with code in several languages and an answer that was given."""

import json
import re
import tempfile
from html import escape
from pathlib import Path
from typing import Any

from app.http.config import HttpSettings
from app.http.main import create_app
from docs.builder.calls import CALLS, LANGUAGES, RECORDED, Shown
from docs.builder.markdown import Heading, listing
from workers.runtime.config import Settings

NOUNS = {"jobs": "Jobs", "blobs": "Blobs", "uploads": "Uploads in ranges", "service": "The service",
         "workbench": "For the workbench's pages", "shares": "Share links"}  # fmt: skip
TRY = """<section class="try" aria-labelledby="try-it"><h2 id="try-it">Try it here</h2>
<p>Choose a solver, change the job, and send it to this service.</p>
<p class="row" id="examples"></p>
<textarea id="request" spellcheck="false" aria-label="Job as JSON" rows="9"></textarea>
<p class="row"><label>API key <input id="key" type="password" autocomplete="off"></label>
<button class="btn go" id="send" type="button">Send, wait 10 s</button> <span id="took" role="status"></span></p>
<pre id="answer" tabindex="0" aria-label="Answer" aria-live="polite">The answer comes here.</pre></section>
"""


def openapi() -> dict[str, Any]:
    """The document as a service gives it; nothing is connected to."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(redis_url="redis://127.0.0.1:1", data_dir=Path(folder))
        return create_app(settings, HttpSettings()).openapi()


def operations(api: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Each call as verb, path and what the document says of it."""
    return [(verb.upper(), path, one) for path, verbs in api["paths"].items() for verb, one in verbs.items()]


def reference() -> tuple[str, list[Heading]]:
    """The body of the page, and its headings."""
    recorded = json.loads(RECORDED.read_text())
    body = [
        "<h1>API by call</h1>\n<p>Where the service has API keys, each call also sends "
        "<code>Authorization: Bearer &lt;key&gt;</code>. The machine's own description is "
        '<a href="/openapi.json">openapi.json</a>; the ideas are in <a href="/docs/http">HTTP in words</a>.</p>\n',
        '<fieldset class="seg" id="languages" hidden><legend>Language of the examples</legend></fieldset>\n',
        TRY,
    ]
    headings = [Heading(2, "try-it", "Try it here")]
    noun = ""
    for verb, path, one in operations(openapi()):
        if one["tags"][0] != noun:
            noun = one["tags"][0]
            headings.append(Heading(2, f"of-{noun}", NOUNS[noun]))
            body.append(f'<h2 id="of-{noun}">{escape(NOUNS[noun])}</h2>\n')
        name = one["operationId"]
        headings.append(Heading(3, name, f"{verb} {path}", [one["summary"], one.get("description", "")]))
        body.append(_call(verb, path, one, CALLS[name], recorded.get(name)))
    return "".join(body), headings


def _call(verb: str, path: str, one: dict[str, Any], shown: Shown, recorded: dict[str, Any] | None) -> str:
    name = one["operationId"]
    parts = [f'<section class="call" aria-labelledby="{name}"><div>']
    parts.append(f'<h3 id="{name}"><span class="verb">{verb}</span> <code>{escape(path)}</code></h3>\n')
    parts += [f"<p>{_line(text)}</p>\n" for text in (one.get("description") or one["summary"]).split("\n\n")]
    parts.append(_parameters(one.get("parameters", [])))
    parts.append(_answers(one["responses"]))
    parts.append('</div><div class="codes">')
    for language, (lexer, write) in LANGUAGES.items():
        code = write(shown)
        if code:
            block = listing(code, lexer, f"{language}: {verb} {path}")
            parts.append(f'<div data-language="{language}"><p class="language">{language}</p>{block}</div>')
    if recorded:
        label = f"Answer to {verb} {path}"
        said = listing(recorded["shown"], recorded["language"], label) if recorded["shown"].strip() else ""
        parts.append(f'<p class="language">Answer, {recorded["status"]}{"" if said else ", empty"}</p>{said}')
    return "".join(parts) + "</div></section>\n"


def _line(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(" ".join(text.split())))


def _parameters(parameters: list[dict[str, Any]]) -> str:
    if not parameters:
        return ""
    rows = "".join(
        f"<tr><th scope='row'><code>{escape(one['name'])}</code></th><td>{one['in']}</td>"
        f"<td>{_line(one.get('description') or _kind(one['schema']))}</td></tr>\n"
        for one in parameters
    ).replace("'", '"')
    head = '<tr><th scope="col">Parameter</th><th scope="col">In</th><th scope="col">Meaning</th></tr>'
    box = '<div class="scrolls" tabindex="0" role="group" aria-label="Parameters">'
    return f"{box}<table><thead>{head}</thead><tbody>{rows}</tbody></table></div>\n"


def _kind(schema: dict[str, Any]) -> str:
    found = [one.get("type", "") for one in schema.get("anyOf", [schema])]
    text = " or ".join(one for one in found if one and one != "null")
    if "enum" in schema:
        text = ", ".join(map(str, schema["enum"]))
    return text or "text"


def _answers(responses: dict[str, Any]) -> str:
    items = "".join(
        f"<li><b>{status}</b> {_line(answer['description'])}</li>\n" for status, answer in sorted(responses.items())
    )
    return f'<details><summary>Answers</summary><ul class="answers">\n{items}</ul></details>\n'
