// The graph: boxes at their spots, what marks them, zoom.

const view = { x: 0, y: 0, k: 1 };
const layer = Object.fromEntries(["frames", "hulls", "edges", "ghosts", "boxes"].map((id) => [id, svg("g", { id })]));
const LAYERS = ["hulls", "edges", "ghosts", "boxes"];
const drawn = Object.fromEntries(LAYERS.map((id) => [id, new Map()]));
const ready = Object.fromEntries(LAYERS.map((id) => [id, new Map()]));

function outline(kind, w, h) {
  const [l, t, r, b] = [-w / 2, -h / 2, w / 2, h / 2];
  if (kind === "placeholder") return [svg("ellipse", { class: "shape", rx: w / 2, ry: h / 2 })];
  if (kind === "variable") {
    const arc = `A${w / 2} 5 0 0`;
    return [svg("path", { class: "shape", d: `M${l} ${t + 5}${arc} 1 ${r} ${t + 5}V${b - 5}${arc} 1 ${l} ${b - 5}Z` }),
      svg("path", { class: "shape lid", d: `M${l} ${t + 5}${arc} 0 ${r} ${t + 5}` })];
  }
  if (kind === "constant") return [];
  if (kind === "fused") return [svg("path", { class: "shape", d: `M${l} ${t}l5 -5H${r + 5}L${r} ${t}ZM${r} ${t}l5 -5V${b - 5}L${r} ${b}Z` }), svg("rect", { class: "shape", x: l, y: t, width: w, height: h })];
  return [svg("rect", { class: "shape", x: l, y: t, width: w, height: h, rx: 7 })];
}

function told(e, call) {
  const made = (elements[e].makers ?? []).map(([m]) => m).join(" then ");
  return [call, ...places(e).slice(0, 3).map((p) => `${placeText(p)}  ${p[2]}`), made && `made by: ${made}`].filter(Boolean).join("\n");
}

function draw(box, ghost) {
  const [e, spot, kind, lines, output, w, h, call] = world.boxes[box];
  const [x, y] = world.spots[spot];
  const top = -5.5 * (lines.length - 1) + 3.5 + (kind === "variable" ? 2.5 : 0);
  const texts = lines.map((line, i) => svg("text", { y: top + 11 * i + (i ? 1 : 0), class: i ? "small" : null }, line));
  const shapes = outline(kind, w, h);
  const short = elements[e].name ?? (kind === "fused" ? lines[2] : elements[e].op);
  const size = Math.min(20, h - 4, (w - 4) / (0.6 * short.length)).toFixed(1);
  if (output) shapes.push(...outline(kind, w + 7, h + 7).map((s) => put(s, { class: "shape lid" }, [])));
  return svg("g", {
    class: `node is-${kind}${elements[e].group ? " is-group" : ""}${output ? " is-output" : ""}${ghost ? " ghost" : ""}`, transform: `translate(${x} ${y})`,
    "data-node": `n${e}`, "data-box": box, role: "button", "aria-label": `${ghost ? "gone: " : ""}${call}`,
  }, shapes, texts, svg("text", { class: "far-name", y: size / 3, "font-size": size }, short));
}

/** Give a node a mark, and the halo that shows it when it has its first. */
function mark(node, cls, on) {
  if (on && !node.querySelector(".halo")) {
    const [, , , , , w, h] = world.boxes[node.dataset.box];
    node.prepend(svg("rect", { class: "halo", x: -w / 2 - 7, y: -h / 2 - 7, width: w + 14, height: h + 14, rx: 9 }));
    node.append(svg("text", { class: "badge", x: w / 2 - 8, y: -h / 2 - 10 }, elements[world.boxes[node.dataset.box][0]].group ? "changed" : "new"));
  }
  node.classList.toggle(cls, on);
}

function height(stage, spot) { return world.boxes[stage.spotOf.get(spot)][6]; }

function drawEdge(stage, edge) {
  const [tail, head, end, way, stub, operand, type] = world.edges[edge];
  const to = world.spots[head][1] - height(stage, head) / 2;
  let [x, y] = stub ?? world.spots[tail];
  y += stub ? 8 : height(stage, tail) / 2;
  let d = `M${x} ${y}`;
  for (const [a, b] of [...way, [end, to]]) { d += `C${x} ${(y + b) / 2} ${a} ${(y + b) / 2} ${a} ${b}`; [x, y] = [a, b]; }
  d += `m-3 -7l3 7l3 -7`;
  const from = world.boxes[stage.spotOf.get(tail)];
  const parts = [svg("path", { class: `edge${stub ? " is-stub" : ""}`, d })];
  if (operand) parts.push(svg("text", { class: "operand", x: end + 5, y: to - 4 }, operand));
  if (stub) parts.push(svg("g", { class: "stub", transform: `translate(${stub[0]} ${stub[1]})`, "data-node": `n${from[0]}` }, svg("text", { y: 3 }, from[3][0].split(" = ")[0])));
  return svg("g", { "data-tail": from[0], "data-tip": `${name(from[0])} : ${data.types[type]}`, "data-head": world.boxes[stage.spotOf.get(head)][0] }, parts);
}

/** The ground on which the members of a group stand: one area around each, and one along each edge. */
function hull(box) {
  const [, spot, , , , w, h, , group] = world.boxes[box];
  const [x, y] = world.spots[spot];
  return svg("g", { class: "hull", transform: `translate(${x} ${y})`, "data-node": `n${group}`, role: "button", "aria-label": `n${group}: fused` },
    svg("rect", { x: -w / 2 - 9, y: -h / 2 - 17, width: w + 18, height: h + 26, rx: 10 }), svg("text", { x: -w / 2 - 3, y: -h / 2 - 6 }, `fused n${group}`));
}
function hullEdge(stage, edge) {
  return svg("path", { class: "hull", d: drawEdge(stage, edge).firstChild.getAttribute("d").replace(/m[^m]*$/, "") });
}

/** What a stage draws: for each layer, keys and how to make what they stand for. */
function wantedOf(stage) {
  const inGroup = (e) => {
    const [tail, head] = world.edges[e].slice(0, 2).map((s) => world.boxes[stage.spotOf.get(s)][8]);
    return tail !== null && tail === head && !world.edges[e][4];
  };
  const keyOf = (e) => `${e}:${stage.spotOf.get(world.edges[e][0])}:${stage.spotOf.get(world.edges[e][1])}`;
  return {
    ghosts: new Map(stage.ghosts.map((b) => [b, () => draw(b, true)])),
    boxes: new Map(stage.boxes.map((b) => [b, () => draw(b, false)])),
    edges: new Map(stage.edges.map((e) => [keyOf(e), () => drawEdge(stage, e)])),
    hulls: new Map([...stage.edges.filter(inGroup).map((e) => [keyOf(e), () => hullEdge(stage, e)]),
      ...stage.boxes.filter((b) => world.boxes[b][8] !== null).map((b) => [b, () => hull(b)])]),
  };
}
function made(id, key, make) {
  if (!ready[id].has(key)) ready[id].set(key, make());
  return ready[id].get(key);
}
/** Make what is drawn what is wanted; only the difference is touched. */
function renew(id, wanted) {
  const have = drawn[id];
  for (const [key, node] of have) if (!wanted.has(key)) { node.remove(); have.delete(key); }
  const fresh = [];
  for (const [key, make] of wanted) if (!have.has(key)) { const node = made(id, key, make); have.set(key, node); fresh.push(node); }
  layer[id].append(...fresh);
}
/** Make in idle moments what the other stages will draw. */
function prepare() {
  const left = world.stages.filter((_, i) => !data.stages[i].same).flatMap((s) => Object.entries(wantedOf(s)).flatMap(([id, wanted]) => [...wanted].map(([key, make]) => [id, key, make])));
  const of = world;
  const work = (moment) => {
    while (left.length && of === world && moment.timeRemaining() > 2) made(...left.pop());
    if (left.length && of === world) requestIdleCallback(work);
  };
  if (window.requestIdleCallback) requestIdleCallback(work);
}

function enterWorld() {
  world = data.worlds[state.world];
  for (const id of LAYERS) { drawn[id].clear(); ready[id].clear(); layer[id].replaceChildren(); }
  layer.frames.replaceChildren(...world.frames.map(([kind, title, x, y, w, h]) => svg("g", { class: `frame is-${kind}` }, svg("rect", { class: "shape", x, y, width: w, height: h, rx: 8 }), svg("text", { x: x + 10, y: y + 17 }, title))));
}

function showStage() {
  const stage = now();
  for (const [id, wanted] of Object.entries(wantedOf(stage))) renew(id, wanted);
  for (const [b, node] of drawn.boxes) {
    const fresh = stage.fresh.has(world.boxes[b][0]);
    if (fresh !== node.classList.contains("is-added")) mark(node, "is-added", fresh);
  }
}

function place() {
  $("view").setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.k})`);
  $("graph").classList.toggle("far", view.k < 0.5);
  $("graph").classList.toggle("farther", view.k < 0.22);
}
function zoom(factor, x, y) {
  const k = Math.min(4, Math.max(0.01, view.k * factor));
  view.x = x - ((x - view.x) * k) / view.k;
  view.y = y - ((y - view.y) * k) / view.k;
  view.k = k;
  place();
}
function fit() {
  const { width, height: tall } = $("stage").getBoundingClientRect();
  const [w, h] = world.sheet;
  view.k = Math.min(1.2, width / (w + 40), tall / (h + 40)) || 1;
  view.x = (width - w * view.k) / 2;
  view.y = Math.max(0, (tall - h * view.k) / 2);
  place();
}
/** Move so that a node can be seen, if it cannot, and near enough to be read. */
function reveal(e) {
  const box = now().boxOf.get(e);
  if (box === undefined) return;
  const { width, height: tall } = $("stage").getBoundingClientRect();
  const [x, y] = world.spots[world.boxes[box][1]];
  const [at, down] = [x * view.k + view.x, y * view.k + view.y];
  if (view.k >= 0.5 && at > 60 && at < width - 60 && down > 30 && down < tall - 30) return;
  view.k = Math.max(view.k, 0.8);
  view.x = width / 2 - x * view.k;
  view.y = tall / 2 - y * view.k;
  place();
}

function heat(e) {
  const cost = elements[e].cost;
  if (state.colour === "flops") return cost ? cost[0] ?? 0 : 0;
  if (state.colour === "bytes") return cost ? cost[1] + cost[2] : 0;
  return seconds.get(e) ?? 0;
}
const seconds = new Map();
function timed(rows) {
  for (const row of rows) {
    const e = data.sections[0].computes[row[0]];
    if (row[6].length) timed(row[6]);
    else if (e !== undefined) for (const to of [e, ...(holders.get(e) ?? [])]) seconds.set(to, (seconds.get(to) ?? 0) + row[1]);
  }
}
if (data.profile) timed(data.profile.steps);

function matches(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const stage = now();
  return stage.boxes.filter((b) => {
    const [e, , , lines, , , , call] = world.boxes[b];
    const x = elements[e];
    const all = [`n${e}`, call, ...lines, x.op, x.type, ...(x.scope ?? []), ...(x.makers ?? []).map((m) => m[0]), ...places(e).map((p) => `${placeText(p)} ${p[2]}`)];
    const hay = all.join("\n").toLowerCase();
    return words.every((w) => hay.includes(w));
  }).map((b) => world.boxes[b][0]);
}

let found = [];
function marked() {
  if (state.rule !== null) return [...now().boxOf.keys()].filter((e) => byRule(e, state.rule));
  if (state.line) return [...now().boxOf.keys()].filter((e) => places(e).some((p) => p[0] === state.line[0] && p[1] === state.line[1]));
  return found;
}
const byRule = (e, rule) => [e, ...(elements[e].inside ?? [])].some((x) => (elements[x].rewrites ?? []).some((r) => data.rewrites[r][1] === rule));

function paint() {
  const heats = state.colour === "role" ? null : new Map([...drawn.boxes.keys()].map((b) => [b, heat(world.boxes[b][0])]));
  const most = heats && Math.max(1e-12, ...heats.values());
  const lit = new Set(marked());
  // Whatever is written makes the browser look again, so that only what differs is.
  for (const [b, node] of drawn.boxes) {
    const e = world.boxes[b][0];
    if (lit.has(e) !== node.classList.contains("is-found")) mark(node, "is-found", lit.has(e));
    if ((state.node === e) !== node.classList.contains("is-picked")) mark(node, "is-picked", state.node === e);
    const step = heats ? String(Math.min(4, Math.floor(5 * Math.sqrt(heats.get(b) / most)))) : null;
    if (step !== node.getAttribute("data-heat")) step === null ? node.removeAttribute("data-heat") : node.setAttribute("data-heat", step);
  }
  for (const node of drawn.hulls.values()) {
    const picked = node.dataset.node === `n${state.node}`;
    if (picked !== node.classList.contains("is-picked")) node.classList.toggle("is-picked", picked);
  }
  for (const node of drawn.edges.values()) {
    const near = state.node !== null && (Number(node.dataset.tail) === state.node || Number(node.dataset.head) === state.node);
    if (near !== node.firstChild.classList.contains("is-near")) node.firstChild.classList.toggle("is-near", near);
  }
  return lit;
}
