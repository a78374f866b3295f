"use strict";
// The list of all checks: filter, search and order, all told in the address, so that a view can be sent on.
(() => {
  const PAGE = 200;
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const fields = ["text", "status", "level", "order"].map(byId);
  const [text, status, level, order] = fields;
  const css = (word) => word.replaceAll(" ", "-");
  // A row: name, number of the status, seconds, numbers of the requirement and the message.
  const rows = data.rows.map(([name, state, seconds, requirement, message], index) => ({
    name, seconds, index,
    status: data.statuses[state],
    requirement: data.strings[requirement],
    message: data.strings[message],
    level: name.slice(0, name.indexOf("/")),
  }));
  for (const row of rows) row.hay = `${row.name} ${row.status} ${row.requirement} ${row.message}`.toLowerCase();

  const option = (select, value, count) => {
    const made = document.createElement("option");
    made.value = value;
    made.textContent = `${value} (${count.toLocaleString("en")})`;
    select.append(made);
  };
  const tally = (key) => {
    const found = new Map();
    for (const row of rows) found.set(row[key], (found.get(row[key]) ?? 0) + 1);
    return found;
  };
  for (const [value, count] of tally("status")) option(status, value, count);
  for (const [value, count] of tally("level")) option(level, value, count);

  let found = [];
  let shown = 0;
  const list = byId("list");
  const more = byId("more");

  const element = (tag, kind, content) => {
    const made = document.createElement(tag);
    if (kind) made.className = kind;
    made.textContent = content;
    return made;
  };
  const fill = (box, row) => {
    const inner = document.createElement("div");
    if (row.requirement) inner.append(element("p", "requirement", row.requirement));
    if (row.message) inner.append(element("pre", "text", row.message));
    const again = element("p", "rerun", "Run it again: ");
    again.append(element("code", "", data.rerun + row.name));
    inner.append(again);
    box.append(inner);
  };
  const time = (seconds) =>
    seconds >= 1 ? `${seconds} s` : seconds >= 1e-3 ? `${+(seconds * 1e3).toPrecision(3)} ms` : `${+(seconds * 1e6).toPrecision(3)} µs`;
  const show = () => {
    const part = document.createDocumentFragment();
    for (const row of found.slice(shown, shown + PAGE)) {
      const box = document.createElement("details");
      box.className = `check ${css(row.status)}`;
      const line = document.createElement("summary");
      line.append(element("span", "name", row.name), element("span", "status", row.status));
      if (row.seconds !== null) line.append(element("span", "seconds", time(row.seconds)));
      box.append(line);
      box.addEventListener("toggle", () => fill(box, row), { once: true });
      part.append(box);
    }
    list.append(part);
    shown = Math.min(shown + PAGE, found.length);
    more.hidden = shown >= found.length;
  };
  const apply = () => {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const yes = words.filter((word) => !word.startsWith("!"));
    const no = words.filter((word) => word.startsWith("!") && word.length > 1).map((word) => word.slice(1));
    found = rows.filter((row) =>
      (!status.value || row.status === status.value || (status.value === "bad" && data.bad.includes(row.status))) &&
      (!level.value || row.level === level.value) &&
      yes.every((word) => row.hay.includes(word)) && !no.some((word) => row.hay.includes(word)));
    if (order.value === "name") found.sort((a, b) => (a.name < b.name ? -1 : 1));
    if (order.value === "slow") found.sort((a, b) => (b.seconds ?? 0) - (a.seconds ?? 0) || a.index - b.index);
    byId("count").textContent = `${found.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} checks`;
    list.replaceChildren();
    shown = 0;
    show();
  };

  const toAddress = () => {
    const state = new URLSearchParams(fields.filter((f) => f.value).map((f) => [f.id, f.value]));
    history.replaceState(null, "", `#${state.toString() || "checks"}`);
  };
  const fromAddress = () => {
    if (!location.hash.includes("=")) return false;
    const state = new URLSearchParams(location.hash.slice(1));
    for (const field of fields) field.value = state.get(field.id) ?? "";
    apply();
    byId("checks").scrollIntoView();
    return true;
  };
  for (const field of fields) field.addEventListener("input", () => { toAddress(); apply(); });
  byId("filter").addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", show);
  addEventListener("hashchange", fromAddress);
  addEventListener("beforeprint", () => { for (const box of document.querySelectorAll(".section")) box.open = true; });

  // A field of the matrix leads to its checks.
  document.body.classList.add("live");
  for (const table of document.querySelectorAll(".matrix")) {
    const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
    table.tBodies[0].addEventListener("click", (event) => {
      const cell = event.target.closest("td[class], th");
      if (!cell) return;
      const kind = cell.cellIndex ? heads[cell.cellIndex] : "";
      const find = cell.parentElement.dataset.find;
      location.hash = new URLSearchParams({ text: find.endsWith("-") || !kind ? find + (kind && `${kind}-`) : `${find} -${kind}-` });
    });
  }
  byId("filter").hidden = false;
  if (!fromAddress()) apply();
})();
