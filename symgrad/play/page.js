"use strict";
// The page of `python -m symgrad play`. What comes from the server is set as text; pictures and
// derivations are parsed apart, lose their scripts, and stand in roots of their own.
(() => {
  const byId = (id) => document.getElementById(id);
  const begin = JSON.parse(byId("data").textContent);
  const text = byId("text"), numbers = byId("numbers"), state = byId("state");
  const WAIT = 100;
  // What is too wide scrolls with all the rest, which can be reached by keys.
  const OPEN = "article * { overflow: visible !important; }\n";
  const MARKS = ".hinted :is(rect, path, ellipse, polygon) { stroke: light-dark(#0057d8, #8ab8ff); stroke-width: 3; }\n";
  let linked = [], wrong = null, timer = 0, asking = false, again = false;

  function made(tag, content, kind) {
    const found = document.createElement(tag);
    if (content !== undefined) found.textContent = content;
    if (kind) found.className = kind;
    return found;
  }

  // ---- the switches ------------------------------------------------------------------------
  for (const [id, chosen] of [["kinks", "zero"], ["exact", "rounding"]]) {
    for (const name of begin[id]) byId(id).append(new Option(name, name, false, name === chosen));
  }
  const boxes = begin.passes.map((name) => {
    const label = made("label"), box = made("input");
    Object.assign(box, { type: "checkbox", checked: true, value: name });
    label.append(box, ` ${name}`);
    byId("list").append(label);
    return box;
  });
  const off = () => boxes.filter((box) => !box.checked).map((box) => box.value);
  const request = () => ({
    text: text.value, kinks: byId("kinks").value, exact: byId("exact").value,
    picture: byId("picture").value, off: off(),
  });
  document.querySelector(".switches").addEventListener("change", () => {
    const left = off().length;
    byId("left-out").textContent = left ? `(${left} off)` : "";
    soon(0);
  });

  // ---- lines that belong together ----------------------------------------------------------
  function number() {
    const count = text.value.split("\n").length;
    if (numbers.childElementCount !== count) {
      numbers.replaceChildren(...Array.from({ length: count }, (_, i) => made("span", i + 1)));
    }
    for (const [i, row] of [...numbers.children].entries()) row.classList.toggle("wrong", i + 1 === wrong);
    numbers.scrollTop = text.scrollTop;
  }
  function hint(lines) {
    const wanted = new Set(lines);
    for (const [i, row] of [...numbers.children].entries()) row.classList.toggle("hinted", wanted.has(i + 1));
    for (const [element, own] of linked) element.classList.toggle("hinted", own.some((n) => wanted.has(n)));
  }
  function link(element, lines) {
    linked.push([element, lines]);
    if (!lines.length) return;
    element.addEventListener("mouseenter", () => hint(lines));
    element.addEventListener("mouseleave", () => hint([]));
  }
  // By keys: arrows go through the lines of a list that have a line of the text; Enter goes there.
  function walk(host) {
    let at = null;
    const go = (to) => {
      at?.classList.remove("walked");
      at = to;
      at?.classList.add("walked");
      at?.scrollIntoView({ block: "nearest" });
      const lines = at ? linked.find(([element]) => element === at)[1] : [];
      hint(lines);
      if (at) byId("said").textContent = `${at.textContent}: of line ${lines.join(", ")}`;
      return lines;
    };
    host.addEventListener("blur", () => { go(null); byId("said").textContent = ""; });
    host.addEventListener("keydown", (event) => {
      const rows = linked.filter(([element, own]) => own.length && host.contains(element)).map(([element]) => element);
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], now = rows.indexOf(at);
      if (step && rows.length) {
        go(rows[Math.min(Math.max(now < 0 && step < 0 ? rows.length - 1 : now + step, 0), rows.length - 1)]);
      } else if (event.key === "Enter" && now >= 0) {
        const line = linked.find(([element]) => element === at)[1][0];
        const start = text.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1);
        text.focus();
        text.setSelectionRange(start, start);
        hint([line]);
      } else return;
      event.preventDefault();
    });
  }
  for (const id of ["program", "rules"]) walk(byId(id));
  text.addEventListener("mousemove", (event) => {
    const high = parseFloat(getComputedStyle(text).lineHeight);
    hint([Math.floor((event.offsetY - 8) / high + text.scrollTop / high) + 1]);
  });
  text.addEventListener("mouseleave", () => hint([]));
  text.addEventListener("scroll", () => { numbers.scrollTop = text.scrollTop; });
  for (const name of ["keyup", "click"]) {
    text.addEventListener(name, () => hint([text.value.slice(0, text.selectionStart).split("\n").length]));
  }

  // ---- what is shown -----------------------------------------------------------------------
  function mount(host, source, more = "") {
    const root = host.shadowRoot || host.attachShadow({ mode: "open" });
    const signs = { "&lt;": "<", "&gt;": ">", "&amp;": "&" };
    let css = "";
    // The policy of the page allows no style element but its own.
    const markup = source.replace(/<style>([^]*?)<\/style>/g, (_, own) => {
      css += own.replace(/&(lt|gt|amp);/g, (sign) => signs[sign]);
      return "";
    });
    const parsed = new DOMParser().parseFromString(markup, "text/html"), sheet = new CSSStyleSheet();
    sheet.replaceSync(css + more);
    root.adoptedStyleSheets = [sheet];
    root.replaceChildren(...parsed.body.childNodes);
    return root;
  }
  function program(rows) {
    const begins = rows.findIndex(([source]) => source.startsWith("def step("));
    const elements = rows.map(([source, lines]) => {
      const at = source.search(/(^|\s)#/), row = made("div");
      row.append(at < 0 ? source : source.slice(0, at));
      if (at >= 0) row.append(made("span", source.slice(at), "remark"));
      link(row, lines);
      return row;
    });
    const helpers = made("details");
    helpers.append(made("summary", "imports and helpers"), ...elements.slice(0, Math.max(begins, 0)));
    byId("program").replaceChildren(...elements.slice(Math.max(begins, 0)), ...(begins > 0 ? [helpers] : []));
  }
  function rules(rows) {
    byId("rules").replaceChildren(...rows.map(([name, count, grade, reason, changes, lines]) => {
      const row = made("li");
      row.append(made("code", name), ` ×${count} `, made("b", grade), `: ${reason}`, made("pre", changes.join("\n")));
      link(row, lines);
      return row;
    }));
    if (!rows.length) byId("rules").append(made("li", "none"));
  }
  function picture(svg, sizes) {
    const root = mount(byId("graph"), svg || `<p>A graph of ${Number(sizes[0])} nodes is not drawn while you type: program.explore("p.html") shows it.</p>`, MARKS);
    for (const node of root.querySelectorAll("g.node")) {
      const said = node.querySelector("title");
      const places = said ? [...said.textContent.matchAll(/([^\s:]+):(\d+)/g)] : [];
      link(node, places.filter((p) => p[1] === begin.name).map((p) => Number(p[2])));
    }
  }
  function show(answer) {
    const error = answer.error;
    wrong = error ? error.line : null;
    number();
    byId("error").hidden = !error;
    if (error) {
      const where = error.line ? `line ${error.line}: ` : "";
      byId("error").replaceChildren(made("strong", where + error.kind), error.text);
    }
    byId("printed").hidden = !answer.printed;
    byId("printed").textContent = answer.printed;
    byId("right").classList.toggle("stale", Boolean(error));
    state.textContent = `${(answer.seconds * 1000).toFixed(0)} ms`;
    if (error) return;
    state.textContent += `; ${answer.sizes[0]} nodes became ${answer.sizes[1]}`;
    linked = [];
    byId("remark").textContent = answer.remark;
    mount(byId("gradient"), answer.gradient, OPEN);
    program(answer.program);
    rules(answer.rules);
    picture(answer.picture, answer.sizes);
  }

  // ---- asking ------------------------------------------------------------------------------
  async function post(way) {
    const found = await fetch(way, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request()),
    });
    if (!found.ok) throw Object.assign(new Error((await found.text()).trim()), { refused: true });
    return found;
  }
  function fail(error) {
    const [kind, more] = error.refused ? ["Refused", ""] : ["Not answered", ". Is `python -m symgrad play` still running?"];
    show({ error: { kind, text: error.message + more, line: null }, printed: "", seconds: 0 });
  }
  async function ask() {
    if (asking) { again = true; return; }
    asking = true;
    state.textContent = "…";
    try {
      show(await (await post("run")).json());
    } catch (error) {
      fail(error);
    }
    asking = false;
    document.body.dataset.done = Number(document.body.dataset.done || 0) + 1;
    if (again) { again = false; ask(); }
  }
  function soon(wait) {
    clearTimeout(timer);
    timer = setTimeout(ask, wait);
  }
  text.addEventListener("input", () => { wrong = null; number(); soon(WAIT); });
  byId("share").addEventListener("click", async () => {
    try {
      const address = URL.createObjectURL(await (await post("share")).blob());
      const link = made("a");
      Object.assign(link, { href: address, download: `${begin.name.replace(/\.py$/, "")}.html` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    } catch (error) {
      fail(error);
    }
  });

  text.value = begin.text;
  byId("note").textContent = `The text runs on this machine, as you, in ${begin.folder}: whatever it does is done. ` +
    `After ${begin.limit} seconds it is ended. Nothing is saved; Share gives all that is shown as one file.`;
  number();
  ask();
})();
