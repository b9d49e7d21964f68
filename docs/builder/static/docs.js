// The documentation's pages: search, the language of the examples, contents that fold away on a phone, keys.
"use strict";

const at = (id) => document.getElementById(id);
const field = at("find");
const list = at("found");
let index = null;
let chosen = -1;

/** What can be found; fetched once, however many letters are typed meanwhile. */
function sections() {
  index ??= fetched().catch((error) => {
    index = null; // the next letter tries again
    throw error;
  });
  return index;
}

async function fetched() {
  const rows = await (await fetch("/docs/search.json")).json();
  return rows.map(([url, page, title, text]) => ({
    url,
    page,
    title,
    text,
    low: [title.toLowerCase(), page.toLowerCase(), text.toLowerCase()],
  }));
}

/** How well a section answers: every word must be in it, and one in its title counts most. */
function score(section, words) {
  let sum = 0;
  for (const word of words) {
    const [title, page, text] = section.low;
    const found = (title.includes(word) ? 8 : 0) + (page.includes(word) ? 3 : 0) + (text.includes(word) ? 1 : 0);
    if (!found) return 0;
    sum += found + (title === word ? 8 : 0);
  }
  return sum;
}

function excerpt(text, word) {
  const where = Math.max(0, text.toLowerCase().indexOf(word) - 40);
  return (where ? "…" : "") + text.slice(where, where + 120);
}

async function search() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return close();
  const scored = (await sections()).map((section) => [score(section, words), section]);
  const best = scored.filter(([points]) => points).sort((a, b) => b[0] - a[0]).slice(0, 12);
  chosen = -1;
  list.replaceChildren(...best.map(([, section], nth) => entry(section, words[0], nth)));
  if (!best.length) {
    const none = document.createElement("li");
    none.textContent = `Nothing is said of “${field.value}”.`;
    none.setAttribute("role", "option");
    none.setAttribute("aria-disabled", "true");
    list.append(none);
  }
  list.hidden = false;
  field.setAttribute("aria-expanded", "true");
}

function entry(section, word, nth) {
  const item = document.createElement("li");
  const title = document.createElement("b");
  const page = document.createElement("span");
  const text = document.createElement("p");
  item.id = `found-${nth}`;
  item.dataset.url = section.url;
  item.setAttribute("role", "option");
  item.setAttribute("aria-selected", "false");
  title.textContent = section.title;
  page.textContent = section.page;
  text.textContent = excerpt(section.text, word);
  item.append(title, page, text);
  item.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    location.assign(section.url);
  });
  return item;
}

function close() {
  list.hidden = true;
  chosen = -1;
  field.setAttribute("aria-expanded", "false");
  field.removeAttribute("aria-activedescendant");
}

function choose(next) {
  const items = [...list.querySelectorAll("[data-url]")];
  if (!items.length) return;
  chosen = (next + items.length) % items.length;
  items.forEach((item, nth) => item.setAttribute("aria-selected", String(nth === chosen)));
  items[chosen].scrollIntoView({ block: "nearest" });
  field.setAttribute("aria-activedescendant", items[chosen].id);
}

field.addEventListener("input", () => void search());
field.addEventListener("focus", () => void search());
field.addEventListener("blur", close);
field.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") choose(chosen + 1);
  else if (event.key === "ArrowUp") choose(chosen < 0 ? -1 : chosen - 1);
  else if (event.key === "Escape") close();
  else return;
  event.preventDefault();
});
at("finding").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (list.hidden) await search();
  const items = list.querySelectorAll("[data-url]");
  const item = items[Math.max(0, chosen)];
  if (item) location.assign(item.dataset.url);
});

addEventListener("keydown", (event) => {
  const typing = ["INPUT", "TEXTAREA", "SELECT"].includes(event.target.tagName);
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    field.focus();
  }
});

// The contents are open beside the text, and folded above it on a phone.
const narrow = matchMedia("(max-width: 899px)");
const fold = () => (at("contents").open = !narrow.matches);
narrow.addEventListener("change", fold);
fold();
document.querySelector('.contents [aria-current="page"]')?.scrollIntoView({ block: "center" });
if (!location.hash) scrollTo(0, 0);

// One language for every example of the page.
const bar = at("languages");
if (bar) {
  const blocks = [...document.querySelectorAll("[data-language]")];
  const names = [...new Set(blocks.map((block) => block.dataset.language))];
  const kept = localStorage.getItem("allot.language");
  const show = (name) => {
    for (const block of blocks) {
      const has = block.parentElement.querySelector(`[data-language="${name}"]`);
      block.hidden = block.dataset.language !== (has ? name : "curl");
    }
    localStorage.setItem("allot.language", name);
  };
  for (const name of names) {
    const label = document.createElement("label");
    const radio = Object.assign(document.createElement("input"), { type: "radio", name: "language", value: name });
    radio.checked = name === (names.includes(kept) ? kept : names[0]);
    radio.addEventListener("change", () => show(name));
    label.append(radio, name);
    bar.append(label);
    if (radio.checked) show(name);
  }
  bar.hidden = false;
}
