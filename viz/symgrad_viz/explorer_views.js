// What stands around the graph: passes, legend, pane, and the other views.

// ---- passes -------------------------------------------------------------------------------------

function showPasses() {
  const words = state.filter.toLowerCase();
  const fits = (s) => !words || s.name.toLowerCase().includes(words) || s.rules.some(({ rule }) => data.rules[rule].name.toLowerCase().includes(words));
  const among = new Set([...shownStages(state.all || words !== ""), state.pass]);
  const rows = [...among].sort((a, b) => a - b).filter((i) => i === state.pass || fits(data.stages[i]));
  const list = rows.map((i) => {
    const s = data.stages[i];
    const before = i ? data.stages[i - 1].nodes : null;
    const facts = [
      html("span", null, before === null || s.same ? count(s.nodes, "node") : `${number(before)} → ${number(s.nodes)}`),
      i > 0 && html("span", null, s.same ? "no change" : onlyMerged(s) || `+${number(s.new)} −${number(sum(s.gone))}`),
      !fits(s) && html("span", null, "shown now"),
      i > 0 && html("span", { class: "ms" }, `${s.ms.toFixed(1)} ms`),
    ];
    const item = html("li", null, html("button", { class: `pass${s.same ? " same" : ""}`, "data-pass": i, "aria-current": i === state.pass ? "step" : null, onclick: () => change({ pass: i, rule: null }) },
      html("span", { class: "name" }, s.name.replaceAll("_", " ")), html("span", { class: "facts" }, facts)));
    const rules = s.rules.filter(({ rule }) => words && !s.name.includes(words) ? data.rules[rule].name.toLowerCase().includes(words) : i === state.pass);
    if (rules.length && (i === state.pass || words))
      item.append(html("ul", { class: "rules" }, rules.map(({ rule: r, times }) => html("li", null, html("button", {
        "aria-pressed": state.rule === r ? "true" : "false", "data-rule": data.rules[r].name,
        onclick: () => change({ pass: i, rule: state.rule === r ? null : r, line: null, node: null, tab: "graph" }),
      }, `${data.rules[r].name}${times > 1 ? ` ×${times}` : ""}`)))));
    return item;
  });
  $("list").replaceChildren(...list);
  seePass();
  const idle = data.stages.filter((s) => s.same).length;
  $("hidden").textContent = `also the ${idle} that change nothing`;
  $("all").parentNode.hidden = idle === 0;
}

/** Bring the pass that is shown into sight, as far as its list has room. */
function seePass() {
  const [box, here] = [$("list"), $("list").querySelector("li:has([aria-current])")];
  if (!here) return;
  box.scrollLeft = here.offsetLeft - box.offsetLeft;
  const top = here.offsetTop - box.offsetTop;
  const bottom = top + here.offsetHeight;
  if (top < box.scrollTop || bottom > box.scrollTop + box.clientHeight) box.scrollTop = Math.min(top, bottom - box.clientHeight);
}

const sum = (counts) => Object.values(counts).reduce((a, b) => a + b, 0);
/** What a pass did that only merged what is equal. */
function onlyMerged(s) {
  const gone = sum(s.gone);
  return !s.new && gone === s.gone.merged ? `${count(gone, s.constants === gone ? "equal constant" : "equal node")} merged` : "";
}
const WENT = { replaced: "replaced", fused: "fused", merged: "merged with an equal", dropped: "no longer needed" };
function changesText(s) {
  const parts = Object.entries(WENT).filter(([way]) => s.gone[way]).map(([way, text]) => `${number(s.gone[way])} ${text}`);
  return onlyMerged(s) || `${number(s.new)} new${s.picks ? ` (${number(s.picks)} to pick results of fused ones)` : ""}, ${number(sum(s.gone))} gone${parts.length ? ` (${parts.join(", ")})` : ""}`;
}

function headline(lit) {
  const stage = data.stages[state.pass];
  const rewrites = stage.rules.reduce((n, { times }) => n + times, 0);
  const before = state.pass ? data.stages[state.pass - 1].nodes : null;
  const at = stage.name.replaceAll("_", " ");
  $("what").textContent = before === null ? `${at}: ${count(stage.nodes, "node")}, nothing optimised yet`
    : stage.same ? `${at}: changes nothing here` : `${at}: ${number(before)} → ${count(stage.nodes, "node")}${rewrites ? ` by ${count(rewrites, "rewrite")}` : ""}: ${changesText(stage)}`;
  const changed = changes().length;
  $("changes").hidden = !changed;
  $("changes").textContent = `${state.world === "closed" ? `${changed} changed ${changed === 1 ? "box" : "boxes"}` : count(changed, "change")} here: show the next (n)`;
  $("rewrites").hidden = !rewrites;
  $("rewrites").textContent = `one rewrite at a time ( [ ] )`;
  const first = data.places.length && state.pass === 0 ? "What you built, and the gradient that was derived from it." : "";
  $("why").textContent = state.rule !== null ? `${data.rules[state.rule].name}: ${data.rules[state.rule].reason} ${count(lit.length, "node")} here came of it.`
    : state.line ? `${count(lit.length, "node")} of line ${data.fileNames[state.line[0]]}:${state.line[1]}.` : stage.reason || first;
}

/** The levels around what is chosen, each a step back: what is deeper closes. */
function showCrumbs() {
  const here = state.node === null ? null : elements[state.node].level ?? levelAround(state.node);
  const path = here?.path ?? [];
  const back = (level) => {
    const deeper = [...levelsOf(whole, level)].filter((l) => !l.isOpen);
    change({ node: level.element, rule: null, line: null });
    if (deeper.length || !level.isOpen) turnLevels(deeper, false, [level]);
  };
  $("crumbs").replaceChildren(...(path.length < 2 && !path.some((l) => !l.isOpen) ? [] : path.flatMap((level, i) => [i ? " › " : "", html("button", { class: "link", onclick: () => back(level) }, level.title)])));
}
/** The level that a node is in. */
function levelAround(e) {
  const box = whole.boxes[whole.stages[state.pass].boxOf.get(presentIn(e, whole.stages[state.pass]))];
  return box ? whole.levelOf.get(box.spot) : null;
}

const brief = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const heatText = (n) => (state.colour === "time" ? `${brief.format(1e6 * n)} µs` : brief.format(n));
const FUSED = "fused: one pass over the data";
const LEGEND = [["placeholder", "input"], ["variable", "parameter"], ["op", "forward"], ["backward", "gradient"], ["update", "update"], ["fused", FUSED], ["carry", "from step to step"], ["slice", "a slice for each step"], ["test", "what decides"]];
function showLegend() {
  const kinds = new Set(now().boxes.map(kindOf));
  const swatch = (kind, cls, text) => html("li", null, svg("svg", { viewBox: "-15 -9 30 18", "aria-hidden": "true" }, svg("g", { class: `node is-${kind} ${cls}` },
    outline(kind, 26, 14), cls.includes("is-added") && svg("rect", { class: "ring", x: -15, y: -9, width: 30, height: 18, rx: 5 }))), text);
  const items = LEGEND.filter(([kind]) => kinds.has(kind)).map(([kind, text]) => swatch(kind, "", text));
  const ground = (cls, text) => html("li", null, svg("svg", { viewBox: "-15 -9 30 18", "aria-hidden": "true" }, svg("g", { class: `hull${cls}` }, svg("rect", { x: -15, y: -9, width: 30, height: 18, rx: 6 }))), text);
  const open = new Set([...now().groups].map(isLoop));
  if (open.has("")) items.push(ground("", FUSED));
  if (open.has(" is-loop")) items.push(ground(" is-loop", "a loop or a choice"));
  if (state.world === "closed") items.push(swatch("op", "is-group", "several nodes: double-click to see them"));
  if (now().added.length || now().freshGroups.size) items.push(swatch("op", "is-added", state.world === "closed" ? "changed in this pass" : "new in this pass"));
  if (now().ghosts.length) items.push(swatch("op", "ghost", "gone in this pass"));
  if (state.colour !== "role" && state.colour !== "only") items.push(html("li", null, `${COLOURS.find(([c]) => c === state.colour)[1]}${state.colour === "time" ? ", measured" : ", estimated"}, up to`, [1, 2, 3, 4, 5].map((i) => [html("span", { class: `swatch heat${i - 1}` }), heatText((hottest() * i * i) / 25)])));
  $("legend").replaceChildren(...items);
}

// ---- lines of code ------------------------------------------------------------------------------

function row(n, text, props, onclick, within = false) {
  const inner = [html("span", { class: "number" }, String(n)), html("bdi", null, text ? coloured(text, within) : " ")];
  return onclick ? html("button", { ...props, class: `row ${props.class ?? ""}`, onclick }, inner) : html("div", { ...props, class: `row ${props.class ?? ""}` }, inner);
}
function numpyRow(s, n, lines) {
  const section = data.sections[s];
  const e = section.computes[n];
  const mark = (lines.some((l) => l.section === s && l.line === n) ? "marked" : "") + hueClass(e === undefined ? undefined : placeOf(e));
  return row(n, section.lines[n - 1], { class: mark, "data-line": `${s}:${n}` }, e === undefined ? null : () => {
    change({ node: told(e), rule: null, line: null });
  }, section.quoted.has(n));
}
function nativeRow(i, n) {
  const { lines, elements: of } = data.native[i];
  const e = of?.[n] ?? -1;
  return e < 0 ? row(n + 1, lines[n], {}, null) : row(n + 1, lines[n], { class: hueClass(placeOf(e)), "data-element": e }, () => change({ node: told(e), rule: null, line: null }));
}
function codeRow(file, n, text, marks) {
  const has = data.places.some((p) => p.file === file && p.line === n);
  const mark = (marks.some((p) => p.file === file && p.line === n) ? "marked" : "") + (has ? hueAt(`${file}:${n}`) : "");
  return row(n, text, { class: mark, "data-code": `${file}:${n}` }, has ? () => change({ line: [file, n], rule: null, node: null, tab: state.tab === "code" ? "code" : "graph" }) : null, data.files[file].quoted.has(n));
}
function around(pairs, most, reach, make) {
  const wanted = [...new Set(pairs.flatMap((n) => Array.from({ length: 2 * reach + 1 }, (_, i) => n - reach + i)))].filter((n) => n > 0 && n <= most).sort((a, b) => a - b);
  const rows = [];
  wanted.forEach((n, i) => { if (i && wanted[i - 1] !== n - 1) rows.push(html("div", { class: "row" }, "   ⋮")); rows.push(make(n)); });
  return rows;
}

// ---- the pane -----------------------------------------------------------------------------------

function link(e, text) {
  return html("button", { class: "link", "data-to": `n${e}`, onclick: () => change({ node: e, rule: null, line: null }) }, text ?? (elements[e].group ? elements[e].op : elements[e].name ? name(e) : `n${e} ${elements[e].op}`));
}
const listed = (es) => es.flatMap((e, i) => [i ? ", " : "", link(e)]);

const GRADES = { bits: "nothing", values: "the sign of a zero", rounding: "last digits", reals: "all that real arithmetic allows" };
function ruleText(r) {
  const rule = data.rules[r];
  return [html("strong", { class: "mono" }, rule.name), " ", html("span", { class: "grade", title: `may change ${GRADES[rule.grade]}` }, rule.grade)];
}
function ruleSource(r) {
  const rule = data.rules[r];
  return rule.source && html("details", null, html("summary", null, "the rule itself"), html("p", { class: "soft mono" }, rule.where), html("div", { class: "code" }, rule.source.map((text) => html("div", { class: "row" }, text || " "))));
}

function neighbours(e) {
  const stage = now();
  const [reads, readers] = [[], []];
  for (const edge of stage.edges) {
    const [tail, head] = [world.edges[edge].tail, world.edges[edge].head].map((s) => elementAt(stage, s));
    const [into, from] = [head, tail].map((x) => x === e || stage.groupOf.get(x) === e);
    if (into && !from && !reads.includes(tail)) reads.push(tail);
    if (from && !into && !readers.includes(head)) readers.push(head);
  }
  return [reads, readers];
}

function provenance(e) {
  const x = elements[e];
  const slopes = x.slopes ?? [];
  const rule = ({ name: maker, reason }) => html("p", { class: "by-gradient" }, "by the gradient rule ", html("code", null, maker), reason && html("span", { class: "soft" }, `: ${reason}`));
  const items = places(e).slice(0, 6).map((p, i) => html("li", null, "your line ", html("button", { class: "link", "data-place": `${p.file}:${p.line}`, onclick: () => change({ line: [p.file, p.line], rule: null }) }, placeText(p)), p.text && html("code", null, `  ${p.text}`), (data.slopes[slopes[i]] ?? []).map(rule)));
  const sorts = { gradient: "gradient rule ", before: "rewritten before differentiating: ", pass: "pass " };
  const by = ({ name: maker, sort }) => html("li", { class: `by-${sort}` }, sorts[sort], html("code", null, maker), sort === "pass" && html("p", null, data.stages.find((s) => s.name === maker)?.reason ?? ""));
  items.push(...(x.makers ?? []).filter(({ sort }) => (sort === "gradient" && !slopes.length) || sort === "before").map(by));
  const all = [...new Set([...(x.rewrites ?? []), ...(x.inside ?? []).flatMap((part) => elements[part].rewrites ?? [])])].sort((a, b) => a - b);
  for (const r of all) {
    const { stage, rule, change: text } = data.rewrites[r];
    items.push(html("li", { class: "by-rule" }, ruleText(rule), ` in ${data.stages[stage].name}`, html("p", null, data.rules[rule].reason), html("code", null, text), ruleSource(rule)));
  }
  items.push(...(x.makers ?? []).filter(({ sort }) => sort === "pass").map(by));
  return html("ol", { id: "story" }, items);
}

/** Why the ops of a group are one: what allows it, what ends it, and how it runs. */
function grouping(e) {
  const { inside, bounds, written, between, runs } = elements[e];
  const all = [];
  for (let i = 0; i < bounds.length; i += 4 + bounds[i + 3]) {
    const [why, reads, at, count] = bounds.slice(i, i + 4);
    all.push({ why, reads, at, others: bounds.slice(i + 4, i + 4 + count).filter((e) => e >= 0) });
  }
  const parts = inside.filter((part) => !written.includes(part));
  const some = (es) => [listed(es.slice(0, 12)), es.length > 12 && ` and ${es.length - 12} more`];
  const told = ({ why, reads, at, others }) => html("li", null, at < 0 ? "It begins after what is not in this page" : [reads ? "It begins after " : "It ends with ", link(at), others.length > 0 && [", before ", some(others)]], `: ${data.texts[why]}`);
  return [html("h3", null, "Why these are one group"),
    html("p", null, "The pass fusion may take them together, as each makes a row of the same row of what it reads, or adds up the rows: all can work on some rows, then on the next. ", parts.length > 0 && ["What is needed in between alone need not go through memory: ", some(parts), between > 0 && ` (${count(between, "byte")})`, ". "], "Written for others: ", some(written), "."),
    html("ul", { id: "ends" }, all.slice(0, 20).map(told), all.length > 20 && html("li", null, `and ${all.length - 20} ends more`)),
    html("p", { id: "runs" }, `How it runs at these sizes: ${filled(runs)}.`)];
}

/** The array of the source that an element is computed in: that of its buffers, or within a tile its own. */
const arrayOf = (x) => x.array ?? x.buffers?.map(({ section, slot }) => data.sections[section].slots[slot].name).join(", ");
function nodePane(e) {
  const x = elements[e];
  const stage = now();
  const box = stage.boxOf.get(e) ?? world.boxes.findIndex((b) => b.element === e);
  const open = x.level !== undefined && laid.frames.some(({ level }) => level === x.level);
  const here = stage.boxOf.has(e) || stage.groups.has(e) || open;
  const group = stage.groupOf.get(e);
  const [reads, readers] = here ? neighbours(e) : [[], []];
  const out = [html("h2", null, html("code", null, x.group ? x.op : box >= 0 ? world.boxes[box].call.replace(/ : .*$/s, "") : `n${e} = ${x.op}`)), html("p", { class: "mono", id: "type" }, arrayOf(x) ? `${x.type} in ${arrayOf(x)}` : x.type)];
  if (x.scope) out.push(html("p", { class: "soft" }, `in ${x.scope.join(" / ")}`));
  if (group !== undefined) out.push(html("p", null, "inside the group ", link(group)));
  if (!here) {
    const now = present(e, stage);
    out.push(html("p", null, now === null ? "Not in this stage" : elements[now].group ? ["In the overview part of ", link(now)] : ["Not in this stage: now part of, or computed by, ", link(now)], "."));
  }
  if (reads.length) out.push(html("p", null, "reads ", listed(reads)));
  if (readers.length) out.push(html("p", null, "read by ", listed(readers)));
  if (x.inside) out.push(html("p", null, "inside: ", listed(x.inside.slice(0, 60)), x.inside.length > 60 && ` and ${x.inside.length - 60} more`));
  if (x.group) return [...out, html("p", { class: "soft" }, open ? "Open here. Double-click its title, or press Enter, to close it." : "Drawn as one box. Double-click it, or press Enter, to open it in its place; press c to see all.")];
  if (x.bounds) out.push(...grouping(e));
  out.push(html("h3", null, "Where it comes from"), provenance(e));
  const own = places(e);
  if (data.files.length && own.length) {
    const { file } = own[0];
    const lines = new Map(data.files[file].lines);
    out.push(html("h3", null, "Your source ", html("span", { class: "file" }, data.files[file].name)), html("div", { class: "code", id: "own", tabindex: 0 },
      around(own.filter((p) => p.file === file).map((p) => p.line), Infinity, 2, (n) => lines.has(n) && codeRow(file, n, lines.get(n), own))));
  }
  out.push(html("h3", null, "What runs"), html("p", { id: "verdict" }, x.verdict ? filled(x.verdict) : ""));
  const lines = linesOf(e);
  for (const [i, section] of data.sections.entries()) {
    const mine = lines.filter((l) => l.section === i).map((l) => l.line);
    if (mine.length) out.push(html("div", { class: "code", id: `runs${i}`, tabindex: 0 }, around(mine, section.lines.length, 1, (n) => numpyRow(i, n, lines))));
  }
  const { flops, read, written } = x;
  if ((read ?? null) !== null) {
    out.push(html("h3", null, "Cost"), html("p", { id: "cost" }, `${flops === null ? "? floating-point operations" : count(flops, "floating-point operation")}, ${count(read, "byte")} read, ${number(written)} written`));
  }
  if (seconds.has(e)) out.push(html("p", null, `${number(Number((1e6 * seconds.get(e)).toFixed(1)))} µs measured`));
  if (x.kept) out.push(html("h3", null, "Kept for the backward part"), html("p", { id: "kept" }, `${number(x.kept)} bytes: the gradient reads this value, so that it stays in memory until then. `, readers.length > 0 && ["Read by ", listed(readers), "."]));
  if (x.buffers) {
    out.push(html("h3", null, "Memory"));
    for (const { section, slot } of x.buffers) out.push(html("p", { class: "buffer" }, slotText(data.sections[section], data.sections[section].slots[slot])));
  }
  return out;
}
function slotText(s, { name: slot, kind, first, last, offset, bytes, type, host }) {
  const named = { arena: `at byte ${number(offset)} of the arena, steps ${first} to ${last}`, output: "an output, made anew in every call", next: "the next value of a parameter", scalar: "a scalar, a local variable" };
  const where = host < 0 ? named[kind] ?? kind : `in the array of ${s.slots[host].name} until that is written: from its byte ${number(offset)} on, steps ${first} to ${last}`;
  return `${slot}: ${number(bytes)} bytes, ${type}; ${where}`;
}

function rulePane(r) {
  const rule = data.rules[r];
  const mine = data.rewrites.filter(({ rule }) => rule === r);
  return [html("h2", null, ruleText(r)), html("p", null, rule.reason), html("p", { class: "soft" }, `Acted ${count(mine.length, "time")}.`),
    html("ul", null, [...new Set(mine.map(({ stage, change: text }) => `${data.stages[stage].name}: ${text}`))].slice(0, 30).map((t) => html("li", null, html("code", null, t)))), ruleSource(r)];
}

function linePane([file, n]) {
  const lit = marked();
  const lines = new Map(data.files[file]?.lines ?? []);
  return [html("h2", null, `${data.fileNames[file]}:${n}`), html("div", { class: "code", tabindex: 0 }, around([n], Infinity, 4, (i) => lines.has(i) && codeRow(file, i, lines.get(i), [{ file, line: n }]))),
    html("p", null, `${count(lit.length, "node")} of this stage ${lit.length === 1 ? "comes" : "come"} of it:`), html("ul", null, lit.slice(0, 60).map((e) => html("li", null, link(e))))];
}

const sizesText = () => Object.entries(data.sizes).map(([k, v]) => `${k} = ${v}`).join(", ");
const moreMemory = data.summary.some(({ what, before, after }) => what === "bytes of memory" && after > before);
const keptHere = elements.flatMap((e, i) => (e.kept ? [i] : []));
function programPane() {
  const keys = [["← →", "pass by pass"], ["n", "the next change"], ["[ ]", "one rewrite at a time"], ["s", "source, graph and program side by side"], ["↑ ↓", "along the edges"], ["/", "search; Enter: the next one"], ["Enter", "open the box that is chosen"], ["f", "fit the graph"], ["+ −", "nearer, farther"], ["⇧ ← ↑ → ↓", "move the graph"], ...(WORLDS[0][0] === "closed" ? [["c", "overview, or all nodes"]] : []), ...(bases.open ? [["g", "inside groups and loops, or not"]] : []), ["1 … 5", "views"], ["Esc", "let go"]];
  return [html("h2", null, data.title), html("h3", null, "What it came to"),
    html("table", { id: "sums" }, sizesText() && html("caption", null, `for ${sizesText()}${data.guessed ? ", a guess: there was no call yet" : ""}`), html("thead", null, html("tr", null, html("td"), html("th", { scope: "col" }, "as written"), html("th", { scope: "col" }, "what runs"))),
      html("tbody", null, data.summary.map(({ depth, what, before, after }) => html("tr", { class: ["", "part", "part deeper"][depth] }, html("th", { scope: "row", class: "left" }, what), html("td", null, number(before)), html("td", null, number(after)))))),
    moreMemory && html("p", { class: "soft" }, "More memory than as written: the passes aim at fewer operations and fewer bytes moved, for which steps change their order and kernels use scratch. compile(…, memory_budget=…) aims at memory."),
    data.native.map(({ title, lines }) => html("details", null, html("summary", null, title), html("div", { class: "code", tabindex: 0 }, lines.map((text) => html("div", { class: "row" }, text || " "))))),
    keptHere.length > 0 && html("h3", null, "Kept for the backward part"), keptHere.length > 0 && html("p", { id: "kept-all" }, `${number(keptHere.reduce((n, e) => n + elements[e].kept, 0))} bytes that the forward part computes and the gradient reads later: `, listed(keptHere.slice(0, 30)), keptHere.length > 30 && ` and ${keptHere.length - 30} more`, "."),
    html("h3", null, "How to read it"),
    html("p", null, "Choose a pass on the left to see what it changed. Click a node to see which line of yours it comes from, every rule that changed it and why, and the line of NumPy that computes it now."),
    data.rules.length > 0 && html("p", { id: "grades" }, "A rule's grade says what it may change. ", Object.entries(GRADES).flatMap(([grade, may], i) => [i ? ", " : "", html("span", { class: "grade" }, grade), ` ${may}`]), "."),
    html("h3", null, "Keys"), html("table", null, html("tbody", null, keys.map(([k, what]) => html("tr", null, html("th", { scope: "row", class: "left" }, html("kbd", null, k)), html("td", { class: "left" }, what))))),
    html("p", { class: "soft" }, data.files.length ? "Parts of your source are inside this file." : "None of your source is inside this file.")];
}

function showPane() {
  const inner = state.event !== null ? rewritePane(state.event) : state.rule !== null ? rulePane(state.rule) : state.line ? linePane(state.line) : state.node !== null ? nodePane(state.node) : programPane();
  $("pane").replaceChildren(...inner.flat(Infinity).filter(Boolean));
  $("pane").scrollTop = 0;
}

// ---- the other views ----------------------------------------------------------------------------

function showNumpy() {
  const lines = state.node === null ? [] : linesOf(state.node);
  $("panel-numpy").replaceChildren(...data.sections.flatMap((section, s) => [html("h3", null, `runs ${section.title}`), html("div", { class: "code" }, section.lines.map((_, i) => numpyRow(s, i + 1, lines)))]));
  $("panel-numpy").querySelector(".marked")?.scrollIntoView({ block: "center" });
}
function showCode() {
  const marks = state.line ? [{ file: state.line[0], line: state.line[1] }] : state.node === null ? [] : places(state.node);
  $("panel-code").replaceChildren(...data.files.flatMap((file, f) => [html("h3", { class: "file" }, file.name), html("div", { class: "code" }, file.lines.map(([n, text]) => codeRow(f, n, text, marks)))]));
  $("panel-code").querySelector(".marked")?.scrollIntoView({ block: "center" });
}

function writer(s, slot) {
  const step = data.sections[s].steps.find(({ written }) => written.includes(slot));
  return step ? step.element : null;
}
function showMemory() {
  const mine = state.node === null ? [] : elements[state.node].buffers ?? [];
  const parts = data.sections.flatMap((section, s) => {
    const is = (i) => mine.some((b) => b.section === s && b.slot === i);
    const pick = (i) => { const e = writer(s, i); if (e !== null) change({ node: told(e), rule: null, line: null }); };
    const held = section.slots.map((slot, i) => [slot, i]);
    const arena = held.filter(([slot]) => slot.kind === "arena" && slot.first >= 0);
    const hosts = [...new Set(section.slots.map(({ host }) => host).filter((host) => host >= 0))];
    const [w, wide] = [Math.max(220, Math.min(1400, 30 * section.steps.length)), Math.max(1, section.steps.length)];
    // As high as the buffers that lie above each other need, as wide as the steps need.
    const chart = (there, bytes, label) => {
      const h = Math.max(60, Math.min(420, 34 * new Set(there.map(([slot]) => slot.offset)).size));
      const [x, y] = [(step) => 60 + (step * w) / wide, (byte) => 10 + h - (byte * h) / Math.max(1, bytes)];
      return svg("svg", { class: "chart", viewBox: `0 0 ${w + 80} ${h + 50}`, width: w + 80, role: "group", "aria-label": label },
      svg("path", { class: "grid", d: `M60 10V${h + 10}H${w + 60}` }), svg("text", { x: 56, y: 18, "text-anchor": "end" }, short(bytes)), svg("text", { x: 56, y: h + 10, "text-anchor": "end" }, "0"),
      svg("text", { x: 60, y: h + 26 }, "step 0"), svg("text", { x: w + 60, y: h + 26, "text-anchor": "end" }, `step ${section.steps.length - 1}`),
      there.map(([slot, i]) => svg("g", { onclick: () => pick(i) },
        svg("rect", { class: `slot${is(i) ? " marked" : ""}`, "data-slot": slot.name, x: x(slot.first), width: Math.max(2, x(slot.last + 1) - x(slot.first)), y: y(slot.offset + slot.bytes), height: Math.max(1, y(slot.offset) - y(slot.offset + slot.bytes)) }, svg("title", null, slotText(section, slot))),
        y(slot.offset) - y(slot.offset + slot.bytes) > 13 && svg("text", { x: x(slot.first) + 4, y: y(slot.offset) - 4, "pointer-events": "none" }, slot.name))));
    };
    const spares = hosts.map((host) => {
      const there = held.filter(([slot]) => slot.host === host);
      const label = `In the array of ${section.slots[host].name}, until that is written`;
      return [html("p", null, `${label}, of ${number(section.slots[host].bytes)} bytes:`), chart(there, Math.max(...there.map(([slot]) => slot.offset + slot.bytes)), label)];
    });
    const rows = held.filter(([slot]) => ["arena", "output", "next"].includes(slot.kind)).sort(([a], [b]) => a.first - b.first).map(([slot, i]) => {
      const e = writer(s, i);
      return html("tr", { class: is(i) ? "marked" : null }, html("th", { scope: "row", class: "left mono" }, slot.name), html("td", { class: "left" }, slot.host < 0 ? slot.kind : `in ${section.slots[slot.host].name}`), html("td", null, number(slot.bytes)),
        html("td", null, slot.offset < 0 ? "" : number(slot.offset)), html("td", null, slot.first < 0 ? "" : `${slot.first} – ${slot.last < section.steps.length ? slot.last : "end"}`), html("td", { class: "left mono" }, slot.type), html("td", { class: "left" }, e !== null && link(e)));
    });
    const head = ["buffer", "kind", "bytes", "at byte", "steps", "type", "first written by"].map((t, i) => html("th", { scope: "col", class: [0, 1, 5, 6].includes(i) ? "left" : null }, t));
    return [html("h3", null, `runs ${section.title}`), html("p", null, `One arena of ${number(section.arena)} bytes, outputs of ${number(section.outputs)}, next values of ${number(section.nexts)}. Across: the steps; up: where in the arena; buffers that never live together share memory.`),
      arena.length > 0 && chart(arena, section.arena, "buffers over the steps"), ...spares, html("table", { class: "slots" }, html("thead", null, html("tr", null, head)), html("tbody", null, rows))];
  });
  $("panel-memory").replaceChildren(...parts.flat(Infinity).filter(Boolean));
}
const short = (bytes) => (bytes < 10 * 1024 ? `${bytes} B` : bytes < 10 * 1024 ** 2 ? `${Math.round(bytes / 1024)} KiB` : `${Math.round(bytes / 1024 ** 2)} MiB`);

function showProfile() {
  if (!data.profile) return;
  const lines = state.node === null ? [] : linesOf(state.node);
  const most = Math.max(...data.profile.steps.map((s) => s.share));
  const cells = ({ line, seconds: time, share, gbytes, gflops, reach, inner }, depth) => {
    const e = data.sections[0].computes[line];
    const code = data.sections[0].lines[line - 1].split("  # ")[0].trim();
    const bar = html("span", { class: "bar" });
    bar.style.width = `${(100 * share) / most}%`;
    return [html("tr", { class: lines.some((l) => l.section === 0 && l.line === line) ? "marked" : null }, html("td", null, String(line)), html("td", { class: "left mono" }, "  ".repeat(depth), e === undefined ? code : link(told(e), code)),
      html("td", null, number(Number((1e6 * time).toFixed(1)))), html("td", null, `${(100 * share).toFixed(1)} %`), html("td", { class: "barred" }, bar), html("td", null, gbytes?.toFixed(1)), html("td", null, gflops?.toFixed(1) ?? "?"), html("td", null, `${(100 * reach).toFixed(0)} %`)),
    ...inner.flatMap((s) => cells(s, depth + 1))];
  };
  const head = ["line", "NumPy", "µs", "share", "", "GB/s", "GFLOP/s", "reach"].map((t, i) => (t ? html("th", { scope: "col", class: i === 1 ? "left" : null }, t) : html("td")));
  $("panel-profile").replaceChildren(html("p", null, `A call takes ${number(Math.round(1e6 * data.profile.seconds))} µs (median of ${data.profile.runs} runs). Symgrad found that ${data.profile.machine}. Reach: how near a step comes to that.`),
    html("table", null, html("thead", null, html("tr", null, head)), html("tbody", null, data.profile.steps.flatMap((s) => cells(s, 0)))));
}

/** The other program, in the same view. */
function switchProgram() {
  const told = new URLSearchParams({ ...(which ? {} : { program: 1 }), tab: state.tab, theme: state.theme, colour: state.colour, panes: state.panes });
  location.hash = `#${told}`;
  location.reload();
}
const MOST_CELLS = 9e6;
/** What differs in two lists of lines: those of either, with their numbers, and three around each. */
function difference(a, b) {
  const plain = (line) => line.split("  # ")[0].trimEnd();
  const [x, y] = [a.map(plain), b.map(plain)];
  let [first, end] = [0, 0];
  while (first < x.length && first < y.length && x[first] === y[first]) first++;
  while (end < x.length - first && end < y.length - first && x[x.length - 1 - end] === y[y.length - 1 - end]) end++;
  const [m, n] = [x.length - first - end, y.length - first - end];
  // The longest common subsequence; of very long ones that differ much, all lines.
  const few = (m + 1) * (n + 1) <= MOST_CELLS;
  const best = few ? new Uint16Array((m + 1) * (n + 1)) : null;
  const at = (i, j) => (few ? best[i * (n + 1) + j] : 0);
  if (few) for (let i = m - 1; i >= 0; i--) for (let j = n - 1; j >= 0; j--) best[i * (n + 1) + j] = x[first + i] === y[first + j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const all = x.slice(0, first).map((_, i) => ["=", i + 1, i + 1, a[i]]);
  let [i, j] = [0, 0];
  while (i < m || j < n) {
    if (i < m && j < n && few && x[first + i] === y[first + j]) { all.push(["=", first + i + 1, first + j + 1, a[first + i]]); i++; j++; }
    else if (i < m && (j >= n || at(i + 1, j) >= at(i, j + 1))) { all.push(["-", first + i + 1, 0, a[first + i]]); i++; }
    else { all.push(["+", 0, first + j + 1, b[first + j]]); j++; }
  }
  for (let k = end; k > 0; k--) all.push(["=", x.length - k + 1, y.length - k + 1, a[x.length - k]]);
  const near = new Set(all.flatMap(([what], k) => (what === "=" ? [] : [-3, -2, -1, 0, 1, 2, 3].map((d) => k + d))));
  return all.flatMap((line, k) => (near.has(k) ? [...(k && !near.has(k - 1) ? [["…", 0, 0, ""]] : []), line] : []));
}
function showCompare() {
  const [a, b] = given.names;
  const { figures, rules } = given.comparison;
  const source = difference(...given.documents.map((of) => (of === data ? of.sections[0].lines : programOf(of.sections[0], of))));
  const head = html("thead", null, html("tr", null, html("td"), html("th", { scope: "col" }, a), html("th", { scope: "col" }, b)));
  const cells = ({ depth, what, before, after }) => html("tr", { class: `${["", "part", "part deeper"][depth ?? 0]}${before !== after ? " differs" : ""}` }, html("th", { scope: "row", class: "left" }, what), html("td", null, number(before)), html("td", null, number(after)));
  const signs = { "=": " ", "-": "−", "+": "+", "…": "" };
  const lines = source.map(([what, i, j, text]) => (what === "…" ? html("div", { class: "row" }, "   ⋮") : html("div", { class: `row diff-${{ "=": "same", "-": "was", "+": "is" }[what]}` }, html("span", { class: "number" }, i || ""), html("span", { class: "number" }, j || ""), html("span", { class: "sign" }, signs[what]), html("bdi", null, coloured(text)))));
  const same = rules.filter((r) => r.before === r.after);
  $("panel-compare").replaceChildren(
    html("p", null, `${a} and ${b}. Shown in the graph: `, html("strong", null, given.names[which]), " ", html("button", { id: "switch", onclick: switchProgram }, `show ${given.names[1 - which]}`), " ", html("button", { onclick: () => change({ colour: "only", tab: "graph" }) }, `mark what only ${given.names[which]} computes`)),
    html("h3", null, "What runs"), html("table", { id: "figures" }, head.cloneNode(true), html("tbody", null, figures.map(cells))),
    html("h3", null, "Rules that acted"), html("table", null, head, html("tbody", null, rules.filter((r) => r.before !== r.after).map(cells))), same.length ? html("p", { class: "soft" }, `${same.length} more acted as often in both.`) : "",
    html("h3", null, "The NumPy program"), source.length ? html("div", { class: "code", id: "source-diff", tabindex: 0 }, lines) : html("p", null, "Both are the same."));
}
