"use strict";
// Everything has its place already; this shows it. Text from the data is only ever set as text.
const data = JSON.parse(document.getElementById("data").textContent);
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

/** The rows of a table that is kept by its columns, some of them as places in a list of values. */
function rowsOf(columns) {
  const fields = Object.entries(columns).map(([field, c]) => [field, Array.isArray(c) ? c : c.at.map((i) => c.of[i])]);
  return (fields[0]?.[1] ?? []).map((_, i) => Object.fromEntries(fields.map(([field, values]) => [field, values[i]])));
}
/** A text that is kept without its numbers, and those. */
const filled = ([t, ...numbers]) => data.texts[t].replaceAll("\0", () => numbers.shift());

const elements = rowsOf(data.elements);
for (const table of ["places", "rewrites"]) data[table] = rowsOf(data[table]);
for (const section of data.sections) Object.assign(section, { steps: rowsOf(section.steps), slots: rowsOf(section.slots) });
const shared = rowsOf(data.boxes).map((box) => {
  const own = (text) => (text[0] === "=" ? `n${box.element} =` : "") + text.slice(1);
  return { ...box, lines: box.lines.map((t, i) => (i ? data.texts[t] : own(data.texts[t]))), call: own(filled(box.call)) };
});
// The same program drawn in several ways, of which one is shown: with groups as one node each, with
// what is inside of them, and in few boxes, each a scope or a line.
for (const drawing of Object.values(data.worlds)) {
  drawing.boxes = rowsOf(drawing.boxes).map(({ box, spot, group }) => ({ ...shared[box], spot, group }));
  drawing.edges = rowsOf(drawing.edges).map((edge) => ({ ...edge, carries: data.texts[edge.carries] }));
  drawing.stages.forEach((stage, i) => {
    for (const of of ["boxes", "edges"]) {
      const gone = new Set(stage[of].gone);
      stage[of] = [...(drawing.stages[i - 1]?.[of] ?? []).filter((x) => !gone.has(x)), ...stage[of].new];
    }
    stage.boxOf = new Map(stage.boxes.map((b) => [drawing.boxes[b].element, b]));
    stage.spotOf = new Map(stage.boxes.map((b) => [drawing.boxes[b].spot, b]));
    stage.fresh = new Set(stage.added);
    stage.groupOf = new Map(stage.boxes.map((b) => drawing.boxes[b]).filter((b) => b.group !== null).map((b) => [b.element, b.group]));
    stage.groups = new Set(stage.groupOf.values());
    stage.freshGroups = new Set([...stage.groups].filter((g) => i && !drawing.stages[i - 1].groups.has(g)));
  });
}
let world = data.worlds[data.world];
const now = () => world.stages[state.pass];
const shownStages = (all) => data.stages.map((s, i) => i).filter((i) => all || i === 0 || !data.stages[i].same);
const holders = new Map();
elements.forEach((e, i) => (e.inside ?? []).forEach((part) => holders.set(part, [...(holders.get(part) ?? []), i])));
const kindOf = (box) => world.boxes[box].kind;
const places = (e) => (elements[e].places ?? []).map((p) => data.places[p]);
const placeText = (p) => `${data.files[p.file]?.name ?? data.fileNames[p.file]}:${p.line}`;

/** The node of a stage that is, or holds, what an element computes. */
function present(e, stage) {
  if (stage.boxOf.has(e) || stage.groups.has(e)) return e;
  if (elements[e].group) return elements[e].inside.find((part) => stage.boxOf.has(part)) ?? null;
  const around = (holders.get(e) ?? []).flatMap((h) => [h, ...(holders.get(h) ?? [])]);
  const holder = around.find((h) => stage.boxOf.has(h));
  if (holder !== undefined) return holder;
  const values = new Set([e, ...(elements[e].ends ?? [])].map((x) => elements[x].value));
  for (const other of stage.boxOf.keys()) {
    if (values.has(elements[other].value)) return other;
    if ((elements[other].inside ?? []).some((part) => values.has(elements[part].value))) return other;
  }
  return null;
}

/** What to tell of when an element is chosen: itself, where an overview draws it with others. */
function told(e) {
  const here = present(e, now());
  return here === null || elements[here].group ? e : here;
}

// ---- finding ------------------------------------------------------------------------------------

/** The nodes of a stage, however it is drawn, that pass a test; of a fused one, those in it if any do. */
function those(test, pass = state.pass) {
  const within = (e) => {
    const inside = (elements[e].inside ?? []).flatMap(within);
    return inside.length ? inside : test(e) ? [e] : [];
  };
  const full = data.worlds.full;
  return [...new Set(full.stages[pass].boxes.flatMap((b) => within(full.boxes[b].element)))];
}
const drawnAs = new Map();
for (const { element, call, lines } of shared) drawnAs.set(element, [...(drawnAs.get(element) ?? []), call, ...lines]);
const rulesOf = (e) => [...new Set((elements[e].rewrites ?? []).map((r) => data.rules[data.rewrites[r].rule]))];
const ruleHay = ({ name, reason }) => `${name}\n${reason}`.toLowerCase();
const hays = new Map();
function hay(e) {
  const x = elements[e];
  if (!hays.has(e)) hays.set(e, [...(drawnAs.get(e) ?? []), x.name, x.op, x.type, ...(x.scope ?? []), ...(x.makers ?? []).map((m) => m.name), ...rulesOf(e).map(ruleHay), ...places(e).map((p) => `${placeText(p)} ${p.text}`)].join("\n").toLowerCase());
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
  const own = (elements[e].lines ?? []).map((line) => ({ section: elements[e].section, line }));
  return elements[e].inside ? [...own, ...elements[e].inside.flatMap(linesOf)] : own;
}

// ---- state, which the address keeps -------------------------------------------------------------

const TABS = [["graph", "Graph"], ["numpy", "NumPy that runs"], ["code", "Your code"], ["memory", "Memory"], ["profile", "Profile"]]
  .filter(([id]) => (id !== "profile" || data.profile) && (id !== "code" || data.files.length));
const COLOURS = [["role", "role"], ["flops", "operations"], ["bytes", "bytes moved"], ...(data.profile ? [["time", "time"]] : [])];
const start = { world: data.world, pass: shownStages(false).at(-1), node: null, tab: "graph", find: "", filter: "", all: false, colour: "role", theme: "auto", rule: null, line: null };
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
    tab: among("tab", TABS), colour: among("colour", COLOURS), world: given.get("world") in data.worlds ? given.get("world") : start.world, theme: among("theme", [["auto"], ["light"], ["dark"]]),
    find: given.get("find") ?? "", filter: given.get("filter") ?? "", all: given.get("all") === "1",
    line: line && Number(line[1]) < data.fileNames.length ? [Number(line[1]), Number(line[2])] : null,
  });
}

function writeAddress() {
  const told = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (key !== "pass" && (value === start[key] || value === null || value === "")) continue;
    told.set(key, key === "node" ? `n${value}` : key === "line" ? value.join(":") : value === true ? "1" : value);
  }
  const hash = `#${told}`;
  if (hash !== location.hash && location.protocol !== "about:") history.replaceState(null, "", hash);
}

/** A new state, shown; `still` is for what was chosen in the graph, which stays where it is. */
function change(next, still) {
  const before = { ...state };
  Object.assign(state, next);
  world = data.worlds[state.world];
  const moved = state.pass !== before.pass || state.world !== before.world;
  if (moved && state.node !== null && next.node === undefined) state.node = told(state.node);
  show(before, still);
}
