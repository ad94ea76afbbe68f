// The graph: boxes at their spots, what marks them, zoom.

const view = { x: 0, y: 0, k: 1 };
const layer = Object.fromEntries(["frames", "lines", "hulls", "edges", "tags", "ghosts", "boxes"].map((id) => [id, svg("g", { id })]));
const LAYERS = ["hulls", "edges", "tags", "ghosts", "boxes"];
// Letters are never smaller than this, in pixels: what is farther shows its name alone, or nothing.
const LEAST = 10;
// At this scale all text can be read; a graph that does not fit so is shown in part, with a map.
const READABLE = LEAST / SMALL_LETTERS;
const TITLES = 20; // room for the titles above the sheet
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

function tip(e, call) {
  const own = gradientRules(e);
  const made = [...own.map((rule) => rule.name), ...(elements[e].makers ?? []).filter(({ sort }) => !own.length || sort !== "gradient").map((m) => m.name)].join(" then ");
  return [call, ...places(e).slice(0, 3).map((p) => `${placeText(p)}  ${p.text}`), made && `made by: ${made}`].filter(Boolean).join("\n");
}

/** How a node is called from afar: by its op, or by its formula where that is shorter, as `w.T` is. */
function shorter(op, line) {
  const formula = line.split(" = ").slice(1).join(" = ");
  return formula && formula.length < op.length ? formula : op;
}
const LINED = ["carry", "slice", "test"]; // known by their first line
function draw(box, ghost) {
  const { element: e, spot, kind, lines, output, width: w, height: h, call } = world.boxes[box];
  const [x, y] = laid.spots.get(spot);
  const top = (-LINE * (lines.length - 1)) / 2 + 4 + (kind === "variable" ? 2.5 : 0);
  const texts = lines.map((line, i) => svg("text", { y: top + LINE * i + (i ? 1 : 0), class: i ? "small" : null }, line));
  const shapes = outline(kind, w, h);
  const short = elements[e].group || LINED.includes(kind) ? lines[0].replace(/^rounds (?=\d)/, "") : elements[e].name ?? (kind === "fused" ? lines[2] : shorter(elements[e].op, lines[0]));
  const hue = hueClass(placeOf(e));
  const size = Math.floor(Math.min(MOST_FAR, h - 4, (w - (hue ? 14 : 4)) / (0.61 * short.length)));
  if (hue && kind !== "placeholder") shapes.push(svg("path", { class: `line-of${hue}`, d: `M${-w / 2 + 3} ${-h / 2 + 7}V${h / 2 - 7}` }));
  if (output) shapes.push(...outline(kind, w + 7, h + 7).map((s) => put(s, { class: "shape lid" }, [])));
  return svg("g", {
    class: `node is-${kind}${elements[e].group ? " is-group" : ""}${output ? " is-output" : ""}${ghost ? " ghost" : ""}`, transform: `translate(${x} ${y})`,
    "data-node": `n${e}`, "data-box": box, role: "button", tabindex: -1, "aria-label": `${ghost ? "gone: " : ""}${call}`,
  }, shapes, texts, svg("text", { class: `far-name f${size}`, y: size / 3, "font-size": size }, short));
}

/** Give a node a mark, and the halos that show it when it has its first. */
function mark(node, cls, on) {
  const { element: e, width: w, height: h } = world.boxes[node.dataset.box];
  if (on && !node.querySelector(".halo")) {
    node.prepend(svg("rect", { class: "halo told" }), svg("rect", { class: "halo" }));
    node.append(svg("text", { class: "badge", x: w / 2 - 8 }, elements[e].group ? "changed" : "new"), svg("text", { class: "count", x: -w / 2 - 8 }));
  }
  node.classList.toggle(cls, on);
  // What was searched for or chosen has its ring around that of what is new.
  const told = node.classList.contains("is-added") ? 13 : 7;
  node.querySelectorAll(".halo").forEach((halo, i) => { const far = i ? 7 : told; put(halo, { x: -w / 2 - far, y: -h / 2 - far, width: w + 2 * far, height: h + 2 * far, rx: far + 2 }, []); });
  for (const text of node.querySelectorAll(".badge, .count")) text.setAttribute("y", -h / 2 - told - 4);
}

function height(stage, spot) { return world.boxes[stage.spotOf.get(spot)]?.height ?? 0; }

/** The element that a spot of a stage shows: of a box, or of an open frame. */
function elementAt(stage, spot) { return world.boxes[stage.spotOf.get(spot)]?.element ?? spot - world.base.spots; }
function drawEdge(stage, edge) {
  const { tail, head, operand, carries, carried, key } = world.edges[edge];
  const { begin, way, end, stub, leaves, down, more, head: at } = laid.ways.get(key);
  const top = (item) => (item.frame || item.stub ? item.height : height(stage, item.spot)) / 2;
  const from = elementAt(stage, tail);
  let [x, y] = carried ? laid.spots.get(tail) : [begin.x, begin.y];
  y += carried ? height(stage, tail) / 2 : top(begin);
  const to = carried ? laid.spots.get(head)[1] - height(stage, head) / 2 : leaves ? down : at.y - top(at);
  let d = `M${x} ${y}`;
  for (let i = 0; i <= way.length; i += 2) {
    const [a, b] = i < way.length ? way.slice(i, i + 2) : [end, to];
    d += `C${x} ${(y + b) / 2} ${a} ${(y + b) / 2} ${a} ${b}`;
    [x, y] = [a, b];
  }
  if (!leaves) d += `m-3 -7l3 7l3 -7`;
  const parts = [svg("path", { class: `edge${stub ? " is-stub" : ""}${carried ? " is-carry" : ""}`, d })];
  if (operand) parts.push(svg("text", { class: "operand", x: end + 5, y: to - 4 }, operand));
  if (stub) parts.push(svg("g", { class: "stub", transform: `translate(${stub[0]} ${stub[1]})`, "data-node": `n${from}` }, svg("text", { y: 3 }, more ? `${more} more` : calledAt(stage, tail))));
  return svg("g", { "data-tail": from, "data-tip": `${name(from)} : ${carries}`, "data-head": elementAt(stage, head) }, parts);
}
function calledAt(stage, spot) {
  const box = world.boxes[stage.spotOf.get(spot)];
  return box ? stubText(box.lines) : cut(elements[spot - world.base.spots].name, STUB);
}

function hullEdge(stage, edge) {
  const { group } = world.boxes[stage.spotOf.get(world.edges[edge].head)];
  return svg("path", { class: `hull${isLoop(group)}`, d: drawEdge(stage, edge).firstChild.getAttribute("d").replace(/m[^m]*$/, "") });
}

/** Where a box, an edge or what belongs to it lies on the sheet: left, top, right, bottom. */
function extent(points, pad) {
  const [xs, ys] = [points.map((p) => p[0]), points.map((p) => p[1])];
  return [Math.min(...xs) - pad, Math.min(...ys) - pad, Math.max(...xs) + pad, Math.max(...ys) + pad];
}
function aroundBox(box) {
  const { spot, width: w, height: h } = world.boxes[box];
  const [x, y] = laid.spots.get(spot);
  return extent([[x - w / 2, y - h / 2], [x + w / 2, y + h / 2]], 30);
}
function alongEdge(edge) {
  const { tail, head, key } = world.edges[edge];
  const { way, stub, begin, head: at } = laid.ways.get(key);
  const points = way.flatMap((x, i) => (i % 2 ? [] : [[x, way[i + 1]]]));
  const ends = begin ? [begin, at].map(({ x, y, height: h }) => [x, y + (y < at.y ? h / 2 : -h / 2)]) : [tail, head].map((s) => laid.spots.get(s));
  return extent([...(stub ? [stub] : []), ...points, ...ends], 60);
}

/** What a stage draws: for each layer, keys, how to make what they stand for, and where it lies. */
function wantedOf(stage) {
  const inGroup = (e) => {
    const { tail, head, from, to, carried } = world.edges[e];
    if (carried || from[0] !== "s" || to[0] !== "s" || !stage.spotOf.has(tail) || !stage.spotOf.has(head) || laid.ways.get(world.edges[e].key).stub) return false;
    const [own, other] = [tail, head].map((s) => world.boxes[stage.spotOf.get(s)].group);
    return own !== null && own === other;
  };
  const hulls = hullsOf(stage);
  const around = ({ rect: [l, t, r, b] }) => extent([[l, t], [r, b]], 10);
  const together = new Map(hulls.flatMap(({ boxes, key }) => boxes.map((b) => [world.boxes[b].spot, key])));
  const between = (e) => inGroup(e) && together.get(world.edges[e].tail) !== together.get(world.edges[e].head);
  const keyOf = (e) => `${e}:${stage.spotOf.get(world.edges[e].tail)}:${stage.spotOf.get(world.edges[e].head)}`;
  const edges = stage.edges.filter((e) => laid.ways.has(world.edges[e].key));
  return {
    ghosts: new Map(stage.ghosts.map((b) => [b, [() => draw(b, true), () => aroundBox(b)]])),
    boxes: new Map(stage.boxes.map((b) => [b, [() => draw(b, false), () => aroundBox(b)]])),
    edges: new Map(edges.map((e) => [keyOf(e), [() => drawEdge(stage, e), () => alongEdge(e)]])),
    hulls: new Map([...edges.filter(between).map((e) => [keyOf(e), [() => hullEdge(stage, e), () => alongEdge(e)]]), ...hulls.map((h) => [`${h.key} ${h.rect[2]}`, [() => hull(h), () => around(h)]])]),
    tags: new Map(hulls.map((h) => [`${h.key} ${h.at}`, [() => tag(h), () => around(h)]])),
  };
}
function made(id, key, [make, where]) {
  if (!ready[id].has(key)) {
    const node = make();
    node.extent = where();
    ready[id].set(key, node);
  }
  return ready[id].get(key);
}
/** Leave out what lies far from the window: at every scale a browser lays out anew all there is. */
const MANY = 200;
let kept = null;
function cull(anew) {
  const [w, h] = [size.width / view.k, size.height / view.k];
  const [x, y] = [-view.x / view.k, -view.y / view.k];
  const near = kept && kept[0] <= x && kept[1] <= y && kept[2] >= x + w && kept[3] >= y + h && kept[2] - kept[0] < 3 * w;
  if (near && !anew) return;
  kept = [x - w / 4, y - h / 4, x + 1.25 * w, y + 1.25 * h];
  const few = now().boxes.length < MANY;
  for (const id of LAYERS) {
    const back = [];
    for (const node of drawn[id].values()) {
      const [l, t, r, b] = node.extent;
      const out = !few && (r < kept[0] || b < kept[1] || l > kept[2] || t > kept[3]);
      if (out) node.remove();
      else if (!node.parentNode) back.push(node);
    }
    if (back.length) layer[id].append(...back);
  }
}
/** Show the layers that can be told apart at this scale: from afar all edges are one path. */
let afar = null;
function attach() {
  if (afar === view.k < 0.22) return;
  afar = view.k < 0.22;
  const wanted = afar ? ["frames", "lines", "ghosts", "boxes"] : ["frames", ...LAYERS];
  $("view").replaceChildren(...wanted.map((id) => layer[id]));
  $("graph").classList.toggle("farther", afar);
}
/** Make what is drawn what is wanted; only the difference is touched. */
function renew(id, wanted) {
  const have = drawn[id];
  for (const [key, node] of have) if (!wanted.has(key)) { node.remove(); have.delete(key); }
  for (const [key, make] of wanted) if (!have.has(key)) have.set(key, made(id, key, make));
}
/** Make in idle moments what the other stages will draw. */
function prepare() {
  if (world.base.where.size > SMALL || !state.gone) return;
  const left = data.stages.flatMap((s, i) => (s.same ? [] : [world.stages[i]])).flatMap((s) => Object.entries(wantedOf(s)).flatMap(([id, wanted]) => [...wanted].map(([key, make]) => [id, key, make])));
  const of = world;
  const work = (moment) => {
    while (left.length && of === world && moment.timeRemaining() > 2) made(...left.pop());
    if (left.length && of === world) requestIdleCallback(work);
  };
  if (window.requestIdleCallback) requestIdleCallback(work);
}

/** Begin with nothing drawn: other places, other boxes. */
function enterWorld() {
  for (const id of LAYERS) { drawn[id].clear(); ready[id].clear(); layer[id].replaceChildren(); }
  layer.frames.replaceChildren(...frames());
  $("captions").replaceChildren(...parts().map(({ kind, title }) => svg("g", { class: `is-${kind}` }, svg("rect", { rx: 3 }), svg("text", null, title))));
}
const parts = () => laid.frames.filter(({ level }) => level.isOpen);
const frames = () => laid.frames.map(({ level, kind, title, x, y, width, height }) => svg("g", { class: `frame is-${kind}`, "data-level": level.element }, svg("rect", { class: "shape", x, y, width, height, rx: 8 }),
  !level.isOpen && svg("text", { class: "title", x: x + 10, y: y + 16, "data-node": `n${level.element}` }, `▾ ${title}`)));

function showStage() {
  const stage = now();
  const there = laid;
  laid = world.layout(state.pass);
  if (there !== laid) enterWorld();
  for (const [id, wanted] of Object.entries(wantedOf(stage))) renew(id, wanted);
  for (const [b, node] of drawn.boxes) {
    const fresh = stage.fresh.has(world.boxes[b].element);
    if (fresh !== node.classList.contains("is-added")) mark(node, "is-added", fresh);
  }
  for (const id of ["hulls", "tags"]) for (const [key, node] of drawn[id]) node.classList.toggle("is-added", stage.freshGroups.has(String(key).includes(":") ? null : world.boxes[parseInt(key)].group));
  const line = ({ key }) => { const way = laid.ways.get(key); return !way?.begin || way.stub ? "" : `M${way.begin.x} ${way.begin.y}L${way.head.x} ${way.head.y}`; };
  layer.lines.replaceChildren(svg("path", { class: "edge", d: stage.edges.map((e) => line(world.edges[e])).join("") }));
  drawMap();
  cull(true);
}

/** The sheet as a map: frames, a dot for each node, those that are new or chosen, what is seen. */
function drawMap() {
  const stage = now();
  const dots = (boxes, cls) => svg("path", { class: `dots ${cls}`, d: boxes.map((b) => { const { spot, width: w, height: h } = world.boxes[b]; const [x, y] = laid.spots.get(spot); return `M${x - w / 2} ${y - h / 2}h${w}v${h}h${-w}z`; }).join("") });
  const map = put($("map").firstChild, { viewBox: `0 0 ${laid.sheet.join(" ")}` }, []);
  $("map").style.width = `min(100%, ${(30 * laid.sheet[0]) / laid.sheet[1]}vh)`;
  map.replaceChildren(...parts().map(({ kind, x, y, width, height }) => svg("g", { class: `frame is-${kind}` }, svg("rect", { class: "shape", x, y, width, height, rx: 8 }))), dots(stage.boxes, ""), dots(changedBoxes(), "fresh"), dots(stage.boxes.filter((b) => drawn.boxes.get(b)?.classList.contains("is-found")), "found"), dots([stage.boxOf.get(chosen())].filter((b) => b !== undefined), "chosen"));
}
/** What is drawn of the element that is chosen. */
const chosen = () => (state.node === null ? null : present(state.node, now()));
/** What is new in a stage, and what is gone, from top to bottom: what is to be chosen, and its box. */
function changes() {
  const stage = now();
  const at = ([, b]) => laid.spots.get(world.boxes[b].spot) ?? [0, 0];
  const boxes = [...stage.added.map((e) => stage.boxOf.get(e)), ...stage.ghosts].map((b) => [world.boxes[b].element, b]);
  const groups = [...stage.freshGroups].map((g) => [g, stage.boxes.find((b) => world.boxes[b].group === g)]);
  return [...boxes, ...groups].sort((a, b) => at(a)[0] - at(b)[0] || at(a)[1] - at(b)[1]);
}
/** The boxes of all that has changed, those of a new group, too. */
function changedBoxes() {
  const members = now().boxes.filter((b) => now().freshGroups.has(world.boxes[b].group));
  return [...changes().map(([, b]) => b), ...members];
}

let size = { width: 0, height: 0 }; // of the window; 0 until the graph is shown
function measure() { if ($("stage").clientWidth) size = { width: $("stage").clientWidth, height: $("stage").clientHeight }; }
function place() {
  $("view").setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.k})`);
  $("graph").classList.toggle("far", view.k < READABLE);
  const far = Math.min(MOST_FAR + 1, Math.ceil(LEAST / view.k));
  if ($("graph").dataset.far !== String(far)) $("graph").dataset.far = far;
  attach();
  cull(false);
  // A title stays in sight as long as its frame is; of a small frame it stands above.
  const told = []; // where titles stand
  [...$("captions").children].forEach((caption, i) => {
    const { title, x, y, width: w, height: h } = parts()[i];
    const [left, top, right, bottom] = [x * view.k + view.x, y * view.k + view.y, (x + w) * view.k + view.x, (y + h) * view.k + view.y];
    const small = view.k < 0.7;
    const across = Math.min(Math.max(left, 0) + 10, Math.max(left, right - 7.3 * title.length - 8));
    const down = small && top > 16 ? top - 5 : Math.min(Math.max(top, 0) + 17, bottom - 6);
    put(caption, { transform: `translate(${across} ${down})` }, []);
    // From very far there is no room for all.
    const end = across + 7.3 * title.length + 8;
    caption.toggleAttribute("hidden", told.some(([a, b, at]) => across < b && a < end && Math.abs(at - down) < 18));
    told.push([across, end, down]);
    // Where the frame begins out of sight, its title has a strip of its own: boxes pass beneath.
    const strip = top < 0 || (small && top <= 16);
    const [from, to] = strip ? [Math.max(left, 0) - across, Math.min(right, size.width) - across] : [-4, 7.3 * title.length + 4];
    put(caption.firstChild, { x: from, width: Math.max(0, to - from), y: strip ? -17 : -13, height: strip ? 22 : 18, class: strip ? "strip" : "" }, []);
  });
  const [w, h] = [size.width / view.k, size.height / view.k];
  const [x, y] = [-view.x / view.k, -view.y / view.k];
  $("map").toggleAttribute("hidden", state.tab !== "graph" || x <= 0 && y <= 0 && x + w >= laid.sheet[0] && y + h >= laid.sheet[1]);
  const part = (n, side) => `${(100 * n) / laid.sheet[side]}%`;
  Object.assign($("map").lastChild.style, { left: part(x, 0), top: part(y, 1), width: part(w, 0), height: part(h, 1) });
}
function zoom(factor, x, y) {
  const k = Math.min(4, Math.max(0.01, view.k * factor));
  view.x = x - ((x - view.x) * k) / view.k;
  view.y = y - ((y - view.y) * k) / view.k;
  view.k = k;
  place();
}
const fitting = () => Math.min(1.2, size.width / (laid.sheet[0] + 12), (size.height - TITLES) / (laid.sheet[1] + 12)) || 1;
function fit() {
  measure();
  view.k = fitting();
  const [w, h] = laid.sheet.map((n) => n * view.k);
  view.x = (size.width - w) / 2;
  view.y = (size.height + TITLES - h) / 2;
  place();
}
/** All of it if it can be read so; else where it begins, readable. */
function begun() {
  measure();
  if (!size.width) return place();
  if (fitting() >= READABLE) return fit();
  // As much of its width as can be read.
  view.k = Math.min(1, Math.max(READABLE, size.width / (laid.sheet[0] + 12)));
  const inputs = now().boxes.filter((b) => world.boxes[b].kind === "placeholder");
  const down = (b) => laid.spots.get(world.boxes[b].spot)[1];
  const first = (inputs.length ? inputs : now().boxes).reduce((a, b) => (a === null || down(b) < down(a) ? b : a), null);
  if (first === null) place(); else centre(first, 0.2);
}
/** Bring a box into the middle, or `down` so far, or as near to it as leaves nothing empty. */
function centre(box, down = 0.5) {
  const spot = laid.spots.get(world.boxes[box].spot);
  const [x, y] = ["width", "height"].map((side, i) => {
    const [room, whole] = [size[side], laid.sheet[i] * view.k];
    const wanted = room * (i ? down : 0.5) - spot[i] * view.k;
    return whole <= room ? (room - whole) / 2 : Math.max(room - whole, Math.min(0, wanted));
  });
  Object.assign(view, { x, y });
  place();
}
/** Move so that a node can be seen, if it cannot, and near enough to be read. */
function reveal(e) {
  if (!size.width) return;
  const box = now().boxOf.get(e) ?? now().ghosts.find((b) => world.boxes[b].element === e) ?? now().boxOf.get(present(e)) ?? now().boxes.find((b) => world.boxes[b].group === e);
  if (box === undefined) return;
  const [x, y] = laid.spots.get(world.boxes[box].spot);
  const [at, down] = [x * view.k + view.x, y * view.k + view.y];
  if (view.k >= READABLE && at > 60 && at < size.width - 60 && down > 30 && down < size.height - 30) return;
  view.k = Math.max(view.k, 1);
  centre(box);
}

function heat(e) {
  const { flops, read, written } = elements[e];
  if (state.colour === "flops") return flops ?? 0;
  if (state.colour === "bytes") return (read ?? 0) + (written ?? 0);
  return seconds.get(e) ?? 0;
}
/** The most of what the colours show; up to i² / 25 of it a node has the i-th of five. */
const hottest = () => Math.max(1e-12, ...now().boxes.map((b) => heat(world.boxes[b].element)));
const seconds = new Map();
function timed(rows) {
  for (const row of rows) {
    const e = data.sections[0].computes[row.line];
    if (row.inner.length) timed(row.inner);
    else if (e !== undefined) for (const to of [e, ...(holders.get(e) ?? [])]) seconds.set(to, (seconds.get(to) ?? 0) + row.seconds);
  }
}
if (data.profile) timed(data.profile.steps);

let found = [];
function marked() {
  if (state.event !== null) return partsOf(data.rewrites[state.event]).flat();
  if (state.rule !== null) return those((e) => (elements[e].rewrites ?? []).some((r) => data.rewrites[r].rule === state.rule));
  if (state.line) return those((e) => places(e).some((p) => p.file === state.line[0] && p.line === state.line[1]));
  return state.colour === "only" && !state.find ? those((e) => only.has(e)) : found;
}

function paint() {
  const heats = state.colour === "role" || state.colour === "only" ? null : new Map([...drawn.boxes.keys()].map((b) => [b, heat(world.boxes[b].element)]));
  const most = heats && hottest();
  const lit = marked();
  const within = new Map(); // of what is drawn, what is lit in it
  for (const e of lit) {
    const box = present(e, now());
    if (box !== null) within.set(box, [...(within.get(box) ?? []), e]);
  }
  const here = chosen();
  // Whatever is written makes the browser look again, so that only what differs is.
  for (const [b, node] of drawn.boxes) {
    const e = world.boxes[b].element;
    const inside = within.get(e) ?? [];
    if (inside.length > 0 !== node.classList.contains("is-found")) mark(node, "is-found", inside.length > 0);
    const many = inside.length && (inside.length > 1 || inside[0] !== e) ? `${inside.length} found` : "";
    const told = node.querySelector(".count");
    if (told && told.textContent !== many) told.textContent = many;
    if ((here === e) !== node.classList.contains("is-picked")) mark(node, "is-picked", here === e);
    const step = heats ? String(Math.min(4, Math.floor(5 * Math.sqrt(heats.get(b) / most)))) : null;
    if (step !== node.getAttribute("data-heat")) step === null ? node.removeAttribute("data-heat") : node.setAttribute("data-heat", step);
  }
  drawMap();
  for (const node of drawn.hulls.values()) {
    const group = node.dataset.node && Number(node.dataset.node.slice(1));
    for (const [cls, on] of [["is-picked", group === here], ["is-found", within.has(group)]]) if (on !== node.classList.contains(cls)) node.classList.toggle(cls, on);
  }
  for (const node of drawn.edges.values()) {
    const near = here !== null && (Number(node.dataset.tail) === here || Number(node.dataset.head) === here);
    if (near !== node.firstChild.classList.contains("is-near")) node.firstChild.classList.toggle("is-near", near);
  }
  return lit;
}
