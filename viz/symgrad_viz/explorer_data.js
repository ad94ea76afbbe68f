// Everything has its place already; this shows it. Text from the data is only ever set as text.
const given = JSON.parse(document.getElementById("data").textContent);
// Of two programs the address says which is shown.
const which = given.documents && /(^|[#&])program=1(&|$)/.test(location.hash) ? 1 : 0;
const data = given.documents ? given.documents[which] : given;
const $ = (id) => document.getElementById(id);

function put(node, props, children) {
  for (const [key, value] of Object.entries(props || {})) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}
const html = (tag, props, ...children) => put(document.createElement(tag), props, children);
const svg = (tag, props, ...children) => put(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);
const count = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
const number = (n) => (n === null || n === undefined ? "?" : n.toLocaleString("en"));
const name = (e) => elements[e].name ?? `n${e}`;

// ---- what the data say, put at hand ------------------------------------------------------------

const DIGITS = new Map([..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].map((c, i) => [c.charCodeAt(0), i]));
/** Whole numbers that are kept as a text: see `numbers_text` of explorer_tables.py. */
function numbersOf(text) {
  const [how, told] = [Number(text[0]), []];
  for (let i = 1, value = 0, base = 1; i < text.length; i++) {
    const digit = DIGITS.get(text.charCodeAt(i));
    value += (digit & 31) * base;
    base *= 32;
    if (digit & 32) continue;
    told.push(value % 2 ? -(value - 1) / 2 : value / 2);
    [value, base] = [0, 1];
  }
  const all = how & 2 ? told.flatMap((value, i) => (i % 2 ? [] : Array(told[i + 1]).fill(value))) : told;
  if (how & 1) all.forEach((step, i) => { if (i) all[i] += all[i - 1]; });
  return all;
}
/** A column: values, numbers as a text, lists of numbers by their lengths, or places in another. */
function columnOf(c) {
  if (Array.isArray(c)) return c;
  if (typeof c === "string") return numbersOf(c);
  if ("at" in c) { const of = columnOf(c.of); return numbersOf(c.at).map((i) => of[i]); }
  const of = numbersOf(c.of);
  let at = 0;
  return numbersOf(c.each).map((n) => (n < 0 ? null : of.slice(at, (at += n))));
}
/** The rows of a table that is kept by its columns. */
function rowsOf(columns) {
  const fields = Object.entries(columns).map(([field, c]) => [field, columnOf(c)]);
  const rows = Array.from(fields[0]?.[1] ?? [], () => ({}));
  for (const [field, values] of fields) for (let i = 0; i < rows.length; i++) rows[i][field] = values[i];
  return rows;
}
/** A text that is kept without its numbers, and those. */
function filled(pieces, of = data) {
  let i = 0;
  const text = of.texts[pieces[0]];
  return pieces.length > 1 ? text.replaceAll("\0", () => pieces[++i]) : text;
}
const programOf = (section, of = data) => columnOf(section.lines).map((line) => filled(line, of));
const zip = (a, b) => a.map((x, i) => [x, b[i]]);

const elements = rowsOf(data.elements);
for (const e of elements) e.buffers = e.buffers?.map(([section, slot]) => ({ section, slot }));
for (const table of ["places", "rewrites"]) data[table] = rowsOf(data[table]);
for (const section of data.sections) Object.assign(section, { lines: programOf(section), computes: Object.fromEntries(zip(...section.computes.map(numbersOf))), steps: rowsOf(section.steps), slots: rowsOf(section.slots) });
for (const code of data.native) if (code.elements) code.elements = numbersOf(code.elements);
const shared = rowsOf(data.boxes).map((box) => {
  const own = (text) => (text[0] === "=" ? `n${box.element} =` : "") + text.slice(1);
  const lines = [own(filled(box.first)), ...box.lines.map((t) => data.texts[t])];
  return { ...box, lines, ...sizeOf(box.kind, lines), call: own(filled(box.call)) };
});
// The same program drawn in two ways: with groups and loops as one node each, and with what is in them.
const bases = data.worlds;
const whole = bases.open ?? bases.full; // of which an overview is made
for (const base of Object.values(bases)) {
  base.boxes = rowsOf(base.boxes).map(({ box, spot, group, level }) => ({ ...shared[box], spot, group, level }));
  base.edges = rowsOf(base.edges);
  base.first = [];
  base.stages.forEach((stage, i) => {
    const before = base.stages[i - 1];
    base.first.push(i && data.stages[i].same ? base.first[i - 1] : i);
    for (const of of ["boxes", "edges"]) {
      const [gone, fresh] = [new Set(numbersOf(stage[of].gone)), numbersOf(stage[of].new)];
      stage[of] = before && !gone.size && !fresh.length ? before[of] : [...(before?.[of] ?? []).filter((x) => !gone.has(x)), ...fresh];
    }
    for (const of of ["ghosts", "added"]) {
      stage[of] = numbersOf(stage[of]);
    }
    once(stage, "boxOf", () => new Map(stage.boxes.map((b) => [base.boxes[b].element, b])));
    once(stage, "groups", () => new Set(stage.boxes.map((b) => base.boxes[b].group).filter((g) => g !== null)));
  });
}
/** A field that is computed when it is first asked for. */
function once(of, field, make) {
  Object.defineProperty(of, field, { configurable: true, get() { const value = make(); Object.defineProperty(of, field, { value }); return value; } });
}
let world = null; // the view that is shown
let laid = null; // the places of what it shows
const now = () => world.stages[state.pass];
const shownStages = (all) => data.stages.map((s, i) => i).filter((i) => all || i === 0 || !data.stages[i].same);
const holders = new Map();
elements.forEach((e, i) => (e.inside ?? []).forEach((part) => holders.set(part, [...(holders.get(part) ?? []), i])));
const kindOf = (box) => world.boxes[box].kind;
const places = (e) => (elements[e].places ?? []).map((p) => data.places[p]);
const placeText = (p) => `${data.files[p.file]?.name ?? data.fileNames[p.file]}:${p.line}`;

/** What is drawn in a stage of an element: it, what holds it, what computes its value, the box of its level. */
function present(e, stage = now()) {
  if (e === null || stage.boxOf.has(e) || stage.groups.has(e)) return e;
  const { level } = elements[e];
  if (level) {
    const closed = level.path.find((l) => stage.members.has(l));
    return closed ? closed.element : laid?.spots.has(level.spot) ? e : null;
  }
  const b = stage.base.boxOf.get(presentIn(e, stage.base));
  if (b === undefined) return null;
  const box = world.base.boxes[b];
  return world.around(box.spot)?.element ?? box.element;
}
/** The node of a stage, before anything is closed, that is, or holds, what an element computes. */
function presentIn(e, stage) {
  if (stage.boxOf.has(e)) return e;
  const around = (holders.get(e) ?? []).flatMap((h) => [h, ...(holders.get(h) ?? [])]);
  const holder = around.find((h) => stage.boxOf.has(h));
  if (holder !== undefined) return holder;
  const within = (elements[e].inside ?? []).find((part) => stage.boxOf.has(part));
  if (within !== undefined) return within;
  const values = new Set([e, ...(elements[e].ends ?? [])].map((x) => elements[x].value));
  for (const other of stage.boxOf.keys()) {
    if (values.has(elements[other].value)) return other;
    if ((elements[other].inside ?? []).some((part) => values.has(elements[part].value))) return other;
  }
  return null;
}

/** What to tell of when an element is chosen: itself, where an overview draws it with others. */
function told(e) {
  const here = elements[e].group ? e : presentIn(e, now().base);
  return here ?? e;
}

// ---- finding ------------------------------------------------------------------------------------

/** The nodes of a stage, however it is drawn, that pass a test; of a fused one, those in it if any do. */
function those(test, pass = state.pass) {
  const within = (e) => {
    const inside = (elements[e].inside ?? []).flatMap(within);
    return inside.length ? inside : test(e) ? [e] : [];
  };
  return [...new Set((bases.full ?? whole).stages[pass].boxes.flatMap((b) => within((bases.full ?? whole).boxes[b].element)))];
}
const drawnAs = new Map();
for (const { element, call, lines } of shared) drawnAs.set(element, [...(drawnAs.get(element) ?? []), call, ...lines]);
const rulesOf = (e) => [...new Set((elements[e].rewrites ?? []).map((r) => data.rules[data.rewrites[r].rule]))];
/** The gradient rules that made an element, of the lines that it comes from. */
const gradientRules = (e) => [...new Set((elements[e].slopes ?? []).flatMap((at) => data.slopes[at] ?? []))];
const ruleHay = ({ name, reason }) => `${name}\n${reason}`.toLowerCase();
const hays = new Map();
function hay(e) {
  const x = elements[e];
  if (!hays.has(e)) hays.set(e, [...(drawnAs.get(e) ?? []), x.name, x.op, x.type, ...(x.scope ?? []), ...(x.makers ?? []).map((m) => m.name), ...gradientRules(e).map(ruleHay), ...rulesOf(e).map(ruleHay), x.kept && "kept for the backward part", ...places(e).map((p) => `${placeText(p)} ${p.text}`)].join("\n").toLowerCase());
  return hays.get(e);
}
const wordsOf = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);
/** The nodes of a stage in which all words occur; a node's number is that node, not who reads it. */
function matches(text, pass = state.pass) {
  const words = wordsOf(text);
  const has = (e, w) => (/^n\d+$/.test(w) ? w === `n${e}` || (elements[e].name ?? "").toLowerCase().includes(w) : hay(e).includes(w));
  return words.length ? those((e) => words.every((w) => has(e, w)), pass) : [];
}
/** Where else there is what is not in this stage: the nearest pass that has such nodes, or such a rule. */
function elsewhere(text) {
  const passes = shownStages(false).sort((a, b) => Math.abs(a - state.pass) - Math.abs(b - state.pass));
  for (const pass of passes) {
    const all = matches(text, pass);
    if (all.length) return { pass, told: `${count(all.length, "node")} in ${data.stages[pass].name.replaceAll("_", " ")}` };
  }
  for (const pass of passes) {
    const acted = data.stages[pass].rules.find(({ rule }) => wordsOf(text).every((w) => ruleHay(data.rules[rule]).includes(w)));
    if (acted) return { pass, rule: acted.rule, find: "", told: `a rule of ${data.stages[pass].name.replaceAll("_", " ")}` };
  }
  return null;
}

/** The lines of the generated source that compute an element, each with its section. */
function linesOf(e) {
  const own = (elements[e].lines ?? []).map((line) => ({ section: elements[e].section ?? 0, line }));
  return elements[e].inside ? [...own, ...elements[e].inside.flatMap(linesOf)] : own;
}

// ---- state, which the address keeps -------------------------------------------------------------

const TABS = [["graph", "Graph"], ["numpy", "NumPy that runs"], ["code", "Your code"], ["memory", "Memory"], ["profile", "Profile"], ["compare", "Compare"]]
  .filter(([id]) => (id !== "compare" || given.comparison) && (id !== "profile" || data.profile) && (id !== "code" || data.files.length));
const COLOURS = [["role", "role"], ["flops", "operations"], ["bytes", "bytes moved"], ...(data.profile ? [["time", "time"]] : []), ...(given.documents ? [["only", "only in this program"]] : [])];
const only = new Set(given.documents ? numbersOf(data.only) : []);
const start = { world: "open", opened: "", gone: true, pass: shownStages(false).at(-1), node: null, tab: "graph", find: "", filter: "", all: false, colour: "role", theme: "auto", rule: null, line: null, event: null, panes: "" };
const state = { ...start };

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const whole = (key, most) => {
    const text = (given.get(key) ?? "").replace(/^n/, "");
    return /^\d+$/.test(text) && Number(text) < most ? Number(text) : null;
  };
  const among = (key, list) => (list.some(([id]) => id === given.get(key)) ? given.get(key) : start[key]);
  const line = /^(\d+):(\d+)$/.exec(given.get("line") ?? "");
  Object.assign(state, start, {
    pass: whole("pass", data.stages.length) ?? start.pass, node: whole("node", elements.length), rule: whole("rule", data.rules.length),
    tab: among("tab", TABS), colour: among("colour", COLOURS), world: among("world", WORLDS), opened: given.get("opened") ?? start.opened, gone: given.get("gone") !== "0", theme: among("theme", [["auto"], ["light"], ["dark"]]),
    event: whole("event", data.rewrites.length), panes: given.get("panes")?.replace(/[^ptsnd]/g, "") ?? start.panes,
    find: given.get("find") ?? "", filter: given.get("filter") ?? "", all: given.get("all") === "1",
    line: line && Number(line[1]) < data.fileNames.length ? [Number(line[1]), Number(line[2])] : null,
  });
}

function writeAddress() {
  const told = new URLSearchParams(which ? { program: 1 } : {});
  for (const [key, value] of Object.entries(state)) {
    if (key !== "pass" && (value === start[key] || value === null || (value === "" && key !== "panes"))) continue;
    if (key === "opened" && state.world !== "closed") continue;
    told.set(key, value === false ? "0" : key === "node" ? `n${value}` : key === "line" ? value.join(":") : value === true ? "1" : value);
  }
  const hash = `#${told}`;
  if (hash !== location.hash && location.protocol !== "about:") history.replaceState(null, "", hash);
}

/** A new state, shown; `still` is for what was chosen in the graph, which stays where it is. */
function change(next, still) {
  const before = { ...state, stood: laid && topOf(next.node ?? state.node) };
  next = unfold(next);
  // What is chosen is one thing: a node, a rule, a line or a rewrite.
  if (next.event === undefined && ["node", "rule", "line", "pass"].some((key) => next[key] !== undefined && next[key] !== null)) next = { ...next, event: null };
  Object.assign(state, next);
  world = viewOf(state);
  const moved = state.pass !== before.pass || state.world !== before.world;
  if (moved && state.node !== null && next.node === undefined) state.node = told(state.node);
  show(before, still);
}
