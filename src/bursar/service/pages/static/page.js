"use strict";
// Everything that runs in the browser beside htmx: the editor, completion, the slider, copying. No value is ever put
// into the page as HTML: text goes in as text.

// -- small things on every page ----------------------------------------------------------------------------------

document.addEventListener("click", async (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    const text = copy.hasAttribute("data-copy-url") ? location.origin + copy.dataset.copy : copy.dataset.copy;
    const before = copy.textContent;
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Select and copy by hand";
    }
    setTimeout(() => { copy.textContent = before; }, 1500);
  }
  if (event.target.closest("[data-print]")) print();
  const sure = event.target.closest("[data-sure]");
  if (sure && !confirm(sure.dataset.sure)) event.preventDefault();
});

// -- the editor --------------------------------------------------------------------------------------------------

const KEYWORDS = `SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT AS AND OR NOT IN BETWEEN IS NULL CASE WHEN THEN ELSE END
  ASC DESC DISTINCT TRUE FALSE ROLLUP CUBE GROUPING SETS FILTER EXPLAIN LIKE CAST DATE COUNT SUM AVG MIN MAX MEDIAN`.split(/\s+/);
const GOALS = ["WITH", "ERROR", "CONFIDENCE", "RMSE", "EPSILON", "RHO", "ON"];
const TOKEN = /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*'?)|("(?:[^"]|"")*"?)|(\d+(?:\.\d+)?(?:e[+-]?\d+)?%?)|([A-Za-z_][A-Za-z_0-9]*)|([\s\S])/g;

function paint(code, text, names) {
  const parts = [];
  for (const [whole, comment, string, quoted, number, word] of text.matchAll(TOKEN)) {
    const kind = comment ? "comment" : string ? "string" : number ? "number" : quoted ? "column"
      : !word ? "" : names.has(word.toLowerCase()) ? "column" : GOALS.includes(word.toUpperCase()) ? "goal"
      : KEYWORDS.includes(word.toUpperCase()) ? "keyword" : "";
    if (!kind) { parts.push(whole); continue; }
    const span = document.createElement("span");
    span.className = `t-${kind}`;
    span.textContent = whole;
    parts.push(span);
  }
  code.replaceChildren(...parts, "\n ");
}

function editor(area) {
  const words = JSON.parse(document.getElementById("words").textContent);
  const names = new Set([...words.tables, ...words.columns.map((column) => column.name)].map((name) => name.toLowerCase()));
  const code = area.parentElement.querySelector("code");
  const form = area.form;
  let timer = 0;

  function changed(delay) {
    paint(code, area.value, names);
    clearTimeout(timer);
    timer = setTimeout(() => area.dispatchEvent(new CustomEvent("typed")), delay);
  }
  area.put = (text, from, to) => {  // by the browser's own command, so that undo works
    area.focus();
    area.setSelectionRange(from, to);
    area.dataset.filling = "";
    if (!document.execCommand("insertText", false, text)) area.setRangeText(text, from, to, "end");
    delete area.dataset.filling;
    changed(50);
  };
  area.addEventListener("input", () => changed(350));
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  document.addEventListener("click", (event) => {
    const whole = event.target.closest("[data-sql]");
    const piece = event.target.closest("[data-insert]");
    if (whole) area.put(whole.dataset.sql, 0, area.value.length);
    if (piece) area.put(piece.dataset.insert, area.selectionStart, area.selectionEnd);
  });
  completion(area, code, words, names);
  changed(0);
}

// -- completion --------------------------------------------------------------------------------------------------

function offers(words, text, at) {
  const before = text.slice(0, at);
  const last = [...before.matchAll(TOKEN)].at(-1)?.[0] ?? "";
  const typed = /^[A-Za-z_]\w*$/.test(last) || /^(?:'(?:[^']|'')*|"(?:[^"]|"")*)$/.test(last) ? last : "";  // a word, or an open quote
  const start = at - typed.length;
  const lead = before.slice(0, start).replace(/\s+/g, " ").trimEnd();
  const goal = [];
  if (/\bWITH( \w+ [\d.]+%?( ON \w+)?,?)*$/i.test(lead)) {
    goal.push({ text: "ERROR 100", told: "largest error of any number" }, { text: "ERROR 1%", told: "in percent of the table" },
      { text: "CONFIDENCE 95%", told: "how sure the error must be" }, { text: "RMSE 20", told: "typical error" },
      { text: `${words.unit.toUpperCase()} 0.1`, told: "the best answer for at most this" });
  }
  const compared = /([A-Za-z_]\w*|"[^"]*")(?: ?(?:=|<>|!=|<=?|>=?)| IN ?\((?:[^()]*,)?| (?:NOT )?BETWEEN(?: '[^']*' AND| \S+ AND)?)$/i.exec(lead);
  const column = compared && words.columns.find((each) => each.name.toLowerCase() === compared[1].toLowerCase());
  let list;
  if (column) list = column.values.map((value) => ({ text: value, told: column.name }));
  else if (goal.length) list = goal;
  else {
    list = [
      ...words.columns.map((each) => ({ text: each.name, told: each.told })),
      ...words.tables.map((text) => ({ text, told: words.tables.length > 1 ? "a table" : "the table" })),
      { text: "COUNT(*)", told: "how many rows" }, { text: "SUM(", told: "sum of a column" }, { text: "AVG(", told: "average" },
      { text: "WITH ERROR 100 CONFIDENCE 95%", told: "how exact the answer must be" },
      ...["SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "BETWEEN", "AND", "OR", "NOT", "IN (", "IS NULL", "CASE WHEN", "ROLLUP (", "CUBE ("].map((text) => ({ text, told: "" })),
    ];
    if (!typed) list = [];
  }
  const wanted = typed.toLowerCase();
  const fits = list.filter(({ text }) => text.toLowerCase().startsWith(wanted) && text.toLowerCase() !== wanted);
  const eager = Boolean(typed) || Boolean(column) || /\bWITH$/i.test(lead);  // what comes next is nearly certain
  return { start, list: fits.slice(0, 40), eager };
}

function completion(area, code, words) {
  const box = document.getElementById("completions");
  let found = { list: [] }, active = -1;

  const close = () => { box.hidden = true; active = -1; area.removeAttribute("aria-activedescendant"); area.removeAttribute("aria-controls"); };
  function mark(place) {
    active = place;
    [...box.children].forEach((item, n) => item.setAttribute("aria-selected", String(n === place)));
    const item = box.children[place];
    if (!item) return;
    area.setAttribute("aria-activedescendant", item.id);
    item.scrollIntoView({ block: "nearest" });
  }
  function take(place) {
    const end = area.selectionStart;
    const text = found.list[place].text;
    close();
    area.put(text, found.start, end);
  }
  function open(asked) {
    found = offers(words, area.value, area.selectionStart);
    if (asked && !found.list.length) found.list = words.columns.map((each) => ({ text: each.name, told: each.told }));
    if (!found.list.length || !(asked || found.eager)) { close(); return; }
    box.replaceChildren(...found.list.map(({ text, told }, n) => {
      const item = document.createElement("li");
      item.id = `completion-${n}`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", "false");
      const small = document.createElement("small");
      small.textContent = told;
      item.append(text, small);
      item.addEventListener("mousedown", (event) => { event.preventDefault(); take(n); });
      return item;
    }));
    place();
    area.setAttribute("aria-controls", "completions");
    box.hidden = false;
    active = -1;
  }
  function place() {  // under the word, where the painted copy of the text has it
    let left = found.start;
    const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (left <= node.length) {
        const range = document.createRange();
        range.setStart(node, left);
        range.collapse(true);
        const at = range.getClientRects()[0] ?? node.parentElement.getBoundingClientRect();
        const home = area.getBoundingClientRect();
        box.style.left = `${Math.max(4, Math.min(at.left - home.left, home.width - 240))}px`;
        box.style.top = `${at.bottom - home.top + 4}px`;
        return;
      }
      left -= node.length;
    }
  }
  area.addEventListener("input", (event) => { if ("filling" in area.dataset || event.inputType === "insertLineBreak") close(); else open(false); });
  area.addEventListener("keydown", (event) => {
    if (event.key === " " && event.ctrlKey) { event.preventDefault(); open(true); return; }
    if (box.hidden) return;
    if (event.key === "Escape") { event.preventDefault(); close(); }
    else if (event.key === "ArrowDown") { event.preventDefault(); mark((active + 1) % found.list.length); }
    else if (event.key === "ArrowUp" && active >= 0) { event.preventDefault(); mark((active + found.list.length - 1) % found.list.length); }
    else if (event.key === "Tab" && !event.shiftKey) { event.preventDefault(); take(Math.max(active, 0)); }
    else if (event.key === "Enter" && active >= 0 && !event.ctrlKey) { event.preventDefault(); take(active); }
    else if (["ArrowLeft", "ArrowRight", "ArrowUp"].includes(event.key)) close();
  });
  area.addEventListener("blur", close);
}

// -- the trade of error against price ----------------------------------------------------------------------------

function trade(element) {
  const errors = JSON.parse(element.dataset.errors), prices = JSON.parse(element.dataset.prices);
  const [range, error, price] = element.querySelectorAll("input");
  const low = Math.log(errors[0]), span = Math.log(errors.at(-1)) - low || 1;
  const between = (xs, ys, x) => {  // on a line in logarithms
    let n = 1;
    while (n < xs.length - 1 && xs[n] < x) n += 1;
    const part = (Math.log(x) - Math.log(xs[n - 1])) / (Math.log(xs[n]) - Math.log(xs[n - 1]) || 1);
    if (ys[n] <= 0 || ys[n - 1] <= 0) return part >= 1 ? ys[n] : ys[n - 1];
    return Math.exp(Math.log(ys[n - 1]) + Math.min(Math.max(part, -1), 2) * (Math.log(ys[n]) - Math.log(ys[n - 1])));
  };
  const show = (value) => {
    error.value = Number(value.toPrecision(3));
    price.value = Number(between(errors, prices, value).toPrecision(3));
    range.setAttribute("aria-valuetext", `error ${error.value}${element.dataset.suffix}, ${element.dataset.unit} ${price.value}`);
  };
  const pull = (value) => { range.value = String(100 * (Math.log(value) - low) / span); };
  const ask = () => {
    const area = document.getElementById("sql");
    const goal = /\bWITH\s+(?:ERROR|RMSE|EPSILON|RHO)\s+[\d.e+-]+%?/i.exec(area.value);
    const text = `WITH ERROR ${error.value}${element.dataset.suffix}`;
    const keep = document.activeElement;
    if (goal) area.put(text, goal.index, goal.index + goal[0].length);
    else area.put(`\n${text}`, area.value.trimEnd().replace(/;$/, "").length, area.value.length);
    keep.focus();
  };
  const start = Number(error.value);
  pull(start);
  show(start);
  range.addEventListener("input", () => show(Math.exp(low + span * Number(range.value) / 100)));
  range.addEventListener("change", ask);
  error.addEventListener("change", () => { if (Number(error.value) > 0) { pull(Number(error.value)); show(Number(error.value)); ask(); } });
  price.addEventListener("change", () => {
    const paid = Number(price.value), down = [...prices].reverse(), up = [...errors].reverse();
    const able = down.findIndex((each) => each > 0);
    if (!(paid > 0) || able < 0) return;
    const value = between(down.slice(able), up.slice(able), paid);
    pull(value);
    show(value);
    ask();
  });
}

// -- putting it together -----------------------------------------------------------------------------------------

function ready(root) {
  root.querySelectorAll(".trade:not([data-ready])").forEach((element) => { element.dataset.ready = ""; trade(element); });
  root.querySelectorAll("[data-events]:not([data-ready])").forEach((element) => { element.dataset.ready = ""; follow(element); });
  const verdict = root.querySelector("#explain .verdict"), button = document.getElementById("ask-button");
  if (button) {
    const price = verdict?.dataset.price;
    button.textContent = !price || price === "too much" ? "Ask" : price === "free" ? "Ask, free" : `Ask for ${price}`;
  }
}

function follow(element) {  // a job: its progress as it comes, and the whole page anew when it is over
  const source = new EventSource(element.dataset.events);
  const bar = element.querySelector("progress"), text = element.querySelector(".hint");
  const step = (event) => {
    const { done, of, state } = JSON.parse(event.data);
    if (of) { bar.max = of; bar.value = done; } else bar.removeAttribute("value");
    text.textContent = of ? `${state}, step ${done} of ${of}` : state;
  };
  for (const state of ["waiting", "running"]) source.addEventListener(state, step);
  for (const state of ["done", "failed", "stopped"]) source.addEventListener(state, () => { source.close(); location.reload(); });
}

document.addEventListener("DOMContentLoaded", () => {
  const area = document.getElementById("sql");
  if (area) editor(area);
  document.querySelector("nav [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
  ready(document);
  document.addEventListener("htmx:after:swap", () => {
    ready(document);
    const answer = document.querySelector("#answer > section:not([data-seen])");
    if (answer) {
      answer.dataset.seen = "";
      area?.dispatchEvent(new CustomEvent("typed"));  // what was bought now makes the same question free
      answer.scrollIntoView({ block: "nearest", behavior: "smooth" });
    }
  });
});
