// A job that is sent from the page. The key stays in this tab, and goes as a header.
"use strict";

const KEY = "allot.key";
const by = (id) => document.getElementById(id);
const written = (value) => JSON.stringify(value, null, 1).replace(/\[\s+([-\d.,\s]+?)\s+\]/g, (_, row) =>
  `[${row.replace(/\s+/g, " ")}]`);

async function examples() {
  const api = await (await fetch("/openapi.json")).json();
  const found = api.paths["/v1/jobs"].post.requestBody.content["application/json"].examples;
  for (const [name, example] of Object.entries(found)) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn small";
    button.textContent = name;
    button.title = example.summary;
    button.addEventListener("click", () => (by("request").value = written(example.value)));
    by("examples").append(button);
  }
  by("request").value = written(Object.values(found)[0].value);
}

async function send() {
  const key = by("key").value.trim();
  sessionStorage.setItem(KEY, key);
  const headers = { "Content-Type": "application/json", Prefer: "wait=10" };
  if (key) headers.Authorization = `Bearer ${key}`;
  by("answer").textContent = "Waiting…";
  const begun = performance.now();
  try {
    const answer = await fetch("/v1/jobs", { method: "POST", headers, body: by("request").value });
    const said = await answer.json();
    by("took").textContent = `${answer.status} in ${Math.round(performance.now() - begun)} ms`;
    by("answer").textContent = written(said);
  } catch (error) {
    by("took").textContent = "";
    by("answer").textContent = `The service does not answer: ${error.message}`;
  }
}

by("key").value = sessionStorage.getItem(KEY) ?? "";
by("send").addEventListener("click", () => void send());
examples().catch((error) => (by("answer").textContent = `The examples cannot be read: ${error.message}`));
