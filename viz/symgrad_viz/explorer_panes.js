// Panes beside the graph: your source, the NumPy program, its machine code; lines that belong together.

const HUES = 8; // colours of lines, in turn
/** The lines that built something, each with a colour; and of each what came of it. */
const hueOf = new Map();
const builtAt = new Map();
elements.forEach((e, i) => (e.group ? [] : e.places ?? []).forEach((p) => into(builtAt, p, i)));
const lineKey = (p) => `${data.places[p].file}:${data.places[p].line}`;
const lineKeys = [...new Set([...builtAt.keys()].sort((a, b) => data.places[a].file - data.places[b].file || data.places[a].line - data.places[b].line).map(lineKey))];
lineKeys.forEach((key, i) => hueOf.set(key, i % HUES));
const hueAt = (key) => (hueOf.has(key) ? ` hue${hueOf.get(key)}` : "");
const hueClass = (p) => (p === undefined ? "" : hueAt(lineKey(p)));
const placeOf = (e) => (elements[e].places ?? [])[0];

// ---- the colours of syntax ----------------------------------------------------------------------

const PYTHON = /(#.*$)|("""[^]*?(?:"""|$)|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\b(def|return|for|in|if|else|elif|while|import|from|as|with|lambda|and|or|not|is|class|del|None|True|False|pass|raise|try|except|global|break|continue)\b|\b(\d[\w.]*)|([A-Za-z_]\w*)(?=\()/g;
const SYNTAX = ["remark", "quote", "word", "figure", "call"];
/** A line of Python in pieces, each with its colour; text is only ever set as text. */
function coloured(text, within = false) {
  const end = within ? (text.indexOf(QUOTES) + 1 || text.length - 2) + 2 : 0;
  const parts = within ? [html("span", { class: "quote" }, text.slice(0, end))] : [];
  return [...parts, ...pieces(text.slice(end))];
}
const QUOTES = '"""';
/** The numbers of those lines that begin within a long string: [number, line] each. */
function quoted(lines) {
  const found = [];
  let [open, before] = [false, null];
  for (const [n, text] of lines) {
    if (n - 1 !== before) open = false; // what lies between is not there
    if (open) found.push(n);
    if (text.split(QUOTES).length % 2 === 0) open = !open;
    before = n;
  }
  return new Set(found);
}
for (const section of data.sections) section.quoted = quoted(section.lines.map((text, i) => [i + 1, text]));
for (const file of data.files) file.quoted = quoted(file.lines);
function pieces(text) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(PYTHON)) {
    if (found.index > at) parts.push(text.slice(at, found.index));
    parts.push(html("span", { class: SYNTAX[found.slice(1).findIndex((group) => group !== undefined)] }, found[0]));
    at = found.index + found[0].length;
  }
  return [...parts, text.slice(at)];
}

// ---- which are open -----------------------------------------------------------------------------

const PANES = [["p", "passes"], ["t", "top", "the headline and the legend"], ["s", "source", "your source beside the graph"], ["n", "NumPy", "the NumPy program beside the graph"], ["d", "details"]].filter(([id]) => id !== "s" || data.files.length);
const TRIO = "tsn";
const NARROW = window.innerWidth <= 800;
const PLAIN = NARROW ? "pd" : "ptd";
start.panes = window.innerWidth >= 1800 ? "ptsnd" : PLAIN;
state.panes = start.panes;
const hasPane = (id) => state.panes.includes(id);
/** Where the graph has no room beside the details these are folded, until there is something to tell. */
let folded = false;
function makeRoom() {
  if (NARROW || /[#&]panes=/.test(location.hash) || !hasPane("d") || TOLD.some((key) => state[key] !== null) || fitting() >= READABLE) return;
  state.panes = start.panes = state.panes.replace("d", "");
  folded = true;
  showPanes();
}
const TOLD = ["node", "rule", "line", "event"];
function unfold(next) {
  if (next.panes !== undefined) folded = false;
  if (!folded || !TOLD.some((key) => (next[key] ?? null) !== null)) return next;
  folded = false;
  start.panes = `${state.panes}d`;
  return { ...next, panes: start.panes };
}
const turnPane = (id) => change({ panes: PANES.map(([p]) => p).filter((p) => (p === id ? !hasPane(p) : hasPane(p))).join("") });
const turnTrio = () => change({ panes: state.panes === TRIO ? PLAIN : TRIO, tab: "graph" });

function beginPanes() {
  $("panes").replaceChildren(html("button", { id: "trio-button", title: "your source, the graph and the program side by side, and nothing else (s)", onclick: turnTrio }, "side by side"),
    ...PANES.map(([id, text, title]) => html("button", { "data-pane": id, title: `${title ?? text}: show or fold`, onclick: () => turnPane(id) }, text)));
  $("side-code").replaceChildren(...data.files.flatMap((file, f) => [html("h3", { class: "file" }, file.name), html("div", { class: "code" }, file.lines.map(([n, text]) => codeRow(f, n, text, [])))]));
  const native = data.native.map(({ title }, i) => html("option", { value: i }, title));
  const program = () => data.sections.flatMap((section, s) => [html("h3", null, `runs ${section.title}`), html("div", { class: "code" }, section.lines.map((_, i) => numpyRow(s, i + 1, [])))]);
  const fill = (of) => $("side-program").replaceChildren(...(of === "" ? program() : [html("div", { class: "code" }, data.native[of].lines.map((_, i) => nativeRow(of, i)))]));
  if (native.length) $("side-numpy").prepend(html("select", { "aria-label": "which program", onchange: (event) => { fill(event.target.value); markSides(); } }, html("option", { value: "" }, "NumPy"), native));
  fill("");
  // Each begins at the first line that matters.
  const waiting = new ResizeObserver((seen) => {
    for (const { target } of seen) {
      const first = target.querySelector("[class*=hue]");
      if (!target.clientHeight) continue;
      waiting.unobserve(target);
      if (first && !target.scrollTop) target.scrollTop += first.getBoundingClientRect().top - target.getBoundingClientRect().top - 60;
    }
  });
  for (const side of ["side-code", "side-numpy"]) waiting.observe($(side));
  for (const id of ["side-code", "side-numpy", "graph", "panel-numpy", "panel-code"]) {
    $(id).addEventListener("pointerover", (event) => hint(belonging(event.target)));
    $(id).addEventListener("focusin", (event) => { if (event.target.matches(".row")) hint(belonging(event.target)); });
    $(id).addEventListener("pointerleave", () => hint([]));
  }
}
function showPanes() {
  for (const button of $("panes").querySelectorAll("[data-pane]")) button.setAttribute("aria-pressed", hasPane(button.dataset.pane));
  $("trio-button").setAttribute("aria-pressed", state.panes === TRIO);
  $("passes").hidden = !hasPane("p");
  $("pane").hidden = !hasPane("d");
  for (const id of ["headline", "legend"]) $(id).hidden = !hasPane("t");
  $("side-code").hidden = !hasPane("s");
  $("side-numpy").hidden = !hasPane("n");
  document.querySelector("main").className = `${hasPane("p") ? "" : "no-passes "}${hasPane("d") ? "" : "no-details"}${TOLD.some((key) => state[key] !== null) ? " telling" : ""}`;
  markSides();
}
/** On a narrow screen, where what is told lies over the graph, scroll until the chosen box is seen. */
function uncover() {
  const box = drawn.boxes.get(now().boxOf.get(chosen()));
  if (!NARROW || !box || $("pane").hidden) return;
  const hidden = box.getBoundingClientRect().bottom + 16 - $("pane").getBoundingClientRect().top;
  if (hidden > 0) window.scrollBy(0, hidden);
}
/** Mark in the panes what is chosen, and bring it into sight. */
function markSides() {
  const [code, lines] = state.node === null || elements[state.node].group ? [[], []] : [places(state.node), linesOf(state.node)];
  const wanted = new Set([...(state.line ? [state.line.join(":")] : code.map((p) => `${p.file}:${p.line}`)).map((at) => `c${at}`), ...lines.map(({ section, line }) => `l${section}:${line}`)]);
  if (state.line) for (const e of marked()) for (const { section, line } of linesOf(e)) wanted.add(`l${section}:${line}`);
  for (const e of state.line ? marked() : state.node === null ? [] : [state.node]) for (const own of computing(e)) wanted.add(`e${own}`);
  for (const side of ["side-code", "side-numpy"]) {
    if ($(side).hidden) continue;
    let first = null;
    for (const line of $(side).querySelectorAll(".row")) {
      const on = wanted.has(keyOf(line));
      if (on !== line.classList.contains("marked")) line.classList.toggle("marked", on);
      if (on) first ??= line;
    }
    if (first) { const [box, own] = [$(side).getBoundingClientRect(), first.getBoundingClientRect()]; if (own.top < box.top || own.bottom > box.bottom) $(side).scrollTop += own.top - box.top - box.height / 3; }
  }
}

/** What a row of code is known by: a line of yours, of the program, or of IR that computes an element. */
const keyOf = ({ dataset: { code, line, element } }) => (code ? `c${code}` : line ? `l${line}` : `e${element}`);
/** The elements that compute an element where it runs: it, what it became, and what is in it. */
const computing = (e) => [e, ...(elements[e].ends ?? []), ...(elements[e].inside ?? [])];

// ---- what belongs together ----------------------------------------------------------------------

/** The elements that belong to what is pointed at: a line, a line of the program, a node. */
function belonging(target) {
  const line = target.closest?.(".row");
  if (line?.dataset.code) return [...builtAt].flatMap(([p, all]) => (lineKey(p) === line.dataset.code ? all : []));
  if (line?.dataset.element) return [Number(line.dataset.element)];
  if (line?.dataset.line) {
    const [s, n] = line.dataset.line.split(":").map(Number);
    const e = data.sections[s].computes[n];
    return e === undefined ? [] : [e, told(e)];
  }
  const node = target.closest?.("[data-node]");
  const e = node ? Number(node.dataset.node.slice(1)) : null;
  return e === null ? [] : elements[e].group ? [] : [e];
}
let hinted = [];
/** Light up what belongs together, in every pane. */
function hint(all) {
  for (const node of hinted) node.classList.remove("hinted");
  hinted = [];
  if (!all.length) return;
  const stage = now();
  const boxes = new Set(all.map((e) => (stage.base.boxOf.has(e) || all.length < 20 ? present(e, stage) : null)).filter((e) => e !== null));
  for (const e of boxes) { const node = drawn.boxes.get(stage.boxOf.get(e)); if (node) hinted.push(node); }
  const wanted = new Set();
  for (const e of all) {
    const place = places(e)[0];
    if (place) wanted.add(`c${place.file}:${place.line}`);
    for (const { section, line } of linesOf(e)) wanted.add(`l${section}:${line}`);
    for (const own of computing(e)) wanted.add(`e${own}`);
  }
  const rows = document.querySelectorAll("#side-code:not([hidden]) .row, #side-numpy:not([hidden]) .row");
  for (const line of rows) if (wanted.has(keyOf(line))) hinted.push(line);
  for (const node of hinted) node.classList.add("hinted");
}

// ---- one rewrite at a time ----------------------------------------------------------------------

const firedIn = (pass) => data.rewrites.flatMap(({ stage }, i) => (stage === pass ? [i] : []));
/** The next rewrite of a pass, or of the next one that has any. */
function stepRewrite(by) {
  const all = data.rewrites.map((_, i) => i);
  const here = firedIn(state.pass);
  const at = state.event ?? (by > 0 ? (here[0] ?? all.findLast((i) => data.rewrites[i].stage < state.pass) ?? -1) - (here.length ? 1 : 0) : (here.at(-1) ?? all.find((i) => data.rewrites[i].stage > state.pass) ?? all.length) + (here.length ? 1 : 0));
  // From the end of the page one begins at its beginning.
  const next = all[at + by] ?? (state.event === null ? all.at(by > 0 ? 0 : -1) : undefined);
  if (next !== undefined) chooseRewrite(next);
}
function chooseRewrite(i) {
  const { stage, before, after } = data.rewrites[i];
  const [shown] = [...after, ...before];
  change({ event: i, pass: stage, node: null, rule: null, line: null, tab: "graph" });
  if (shown !== undefined) reveal(shown);
}
const partsOf = ({ before, swallowed, after, made }) => [[...before, ...swallowed], [...after, ...made]].map((es) => [...new Set(es)]);
const SKETCH = { size: 12, high: 22, apart: 12, below: 20 };
/** One side of a rewrite as a small graph, what is read above; what the other has not is marked. */
function sketched(boxes, other, formula) {
  const { size: letters, high, apart, below } = SKETCH;
  const ranks = [];
  boxes.forEach(([, reads]) => ranks.push(reads.length ? Math.max(...reads.map((i) => ranks[i])) + 1 : 0));
  // What is read stands right above its first reader.
  boxes.forEach(([, reads], i) => { const heads = boxes.flatMap(([, own], j) => (own.includes(i) ? [ranks[j] - 1] : [])); if (!reads.length && heads.length) ranks[i] = Math.min(...heads); });
  const whole = (of, i) => { const [text, reads] = of[i]; return `${text}(${reads.map((x) => whole(of, x)).join()})`; };
  const theirs = new Set((other ?? []).map((_, i) => whole(other, i)));
  const wide = boxes.map(([text]) => lettersOf(text) * letters * 0.61 + 14);
  const rows = Array.from({ length: Math.max(...ranks) + 1 }, (_, rank) => boxes.flatMap((_, i) => (ranks[i] === rank ? [i] : [])));
  const widths = rows.map((row) => sum(row.map((i) => wide[i])) + apart * (row.length - 1));
  const [width, at] = [Math.max(...widths), []];
  rows.forEach((row, rank) => { let x = (width - widths[rank]) / 2; for (const i of row) { at[i] = [x + wide[i] / 2, rank * (high + below) + high / 2]; x += wide[i] + apart; } });
  const edges = boxes.flatMap(([, reads], i) => reads.map((from, k) => { const [[a, b], [c, d]] = [at[from], at[i]]; const to = c + (reads.length > 1 ? ((k / (reads.length - 1)) * 2 - 1) * Math.min(10, wide[i] / 4) : 0); return svg("path", { class: "edge", d: `M${a} ${b + high / 2}C${a} ${(b + d) / 2} ${to} ${(b + d) / 2} ${to} ${d - high / 2}m-3 -5l3 5l3 -5` }); }));
  const nodes = boxes.map(([text, reads], i) => svg("g", { class: `${reads.length ? "op" : "leaf"}${theirs.has(whole(boxes, i)) ? "" : " differs"}`, transform: `translate(${at[i].join(" ")})` }, svg("rect", { x: -wide[i] / 2, y: -high / 2, width: wide[i], height: high, rx: reads.length ? 6 : high / 2 }), svg("text", { y: 4 }, text)));
  const tall = rows.length * (high + below) - below;
  return svg("svg", { class: "sketch", role: "img", "aria-label": formula, viewBox: `-2 -2 ${width + 4} ${tall + 4}`, width: width + 4, height: tall + 4 }, edges, nodes);
}
function rewritePane(i) {
  const { stage, rule, change: text, sketch } = data.rewrites[i];
  const here = firedIn(stage);
  const [was, is] = partsOf(data.rewrites[i]);
  const [before, after] = text.split("  ->  ");
  const [old, fresh] = sketch ?? [];
  const side = (title, formula, drawn, es, cls) => html("div", { class: `side-of ${cls}` }, html("h3", null, title), drawn && sketched(drawn, cls === "was" ? fresh : old, formula), html("code", null, formula), es.length > 0 && html("p", { class: "soft" }, "nodes ", listed(es)));
  return [html("h2", null, `Rewrite ${here.indexOf(i) + 1} of ${here.length} in ${data.stages[stage].name.replaceAll("_", " ")}`),
    html("p", { class: "steps" }, html("button", { onclick: () => stepRewrite(-1), title: "[" }, "‹ before"), html("button", { onclick: () => stepRewrite(1), title: "]" }, "next ›")),
    html("p", null, ruleText(rule)), html("p", null, data.rules[rule].reason),
    html("div", { id: "diff" }, side("Before", before, old, was, "was"), side("After", after ?? "", fresh, is, "is")), ruleSource(rule)];
}
