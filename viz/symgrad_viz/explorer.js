// All of it together: what is shown for a state, keys, and the beginning.

const turn = (other) => { if (WORLDS.some(([id]) => id === other)) change({ world: state.world === other ? WORLDS.find(([id]) => id !== other && id !== "closed")?.[0] ?? other : other }); };

const VIEWS = { numpy: showNumpy, code: showCode, memory: showMemory, profile: showProfile, compare: showCompare };
function show(before, still) {
  const is = (key) => !before || before[key] !== state[key];
  const held = document.activeElement?.closest("#list, #pane, .panel");
  const inGraph = $("stage").contains(document.activeElement);
  document.documentElement.className = state.theme === "auto" ? "" : state.theme;
  for (const [id, key] of [["find", "find"], ["filter", "filter"], ["colour", "colour"], ["theme", "theme"]]) if ($(id).value !== state[key]) $(id).value = state[key];
  $("all").checked = state.all;
  $("gone").checked = state.gone;
  $("gone").parentNode.hidden = data.stages.every((s, i) => !i || s.same);
  for (const button of $("worlds").children) button.setAttribute("aria-pressed", button.dataset.world === state.world);
  const anew = is("world") || is("opened") || is("gone");
  const stood = anew || is("pass") ? before?.stood : null;
  world = viewOf(state);
  if (is("pass") || anew) showStage();
  if (is("pass") || is("find") || anew) found = matches(state.find);
  const other = state.find.trim() && !found.length ? elsewhere(state.find) : null;
  $("found").textContent = state.find.trim() ? `${found.includes(state.node) ? `${found.indexOf(state.node) + 1} of ` : ""}${found.length} found${other ? " here" : ""}` : "";
  $("other").hidden = !other;
  $("other").textContent = other ? other.told : "";
  const lit = paint();
  if (is("pass") || is("all") || is("filter") || is("rule")) showPasses();
  headline(lit);
  showPanes();
  showCrumbs();
  if (is("pass") || is("colour") || anew) showLegend();
  for (const [id] of TABS) {
    $(`tab-${id}`).setAttribute("aria-selected", id === state.tab);
    $(`tab-${id}`).tabIndex = id === state.tab ? 0 : -1;
    $(`panel-${id}`).hidden = id !== state.tab;
  }
  if (is("pass") || is("node") || is("rule") || is("line") || is("event") || anew) showPane();
  VIEWS[state.tab]?.();
  const stands = stood && topOf(state.node);
  if (stands) { view.x += (stood[0] - stands[0]) * view.k; view.y += (stood[1] - stands[1]) * view.k; place(); }
  else if (is("world") || !before) { if (!before) { measure(); if (size.width) makeRoom(); } begun(); }
  else if (is("panes") && state.node === null) requestAnimationFrame(begun);
  else if (is("tab") || anew || is("pass")) place();
  if (!still && (is("node") || is("world")) && state.node !== null && state.tab === "graph") reveal(state.node);
  if (is("node")) uncover();
  if (anew) prepare();
  // Who works with keys stays where they were, though what had the focus is drawn anew.
  if (inGraph) (drawn.boxes.get(now().boxOf.get(chosen())) ?? $("graph")).focus({ preventScroll: true });
  else if (held && document.activeElement === document.body) ((held.id === "pane" ? null : held.querySelector("[aria-current], button.marked")) ?? held).focus({ preventScroll: true });
  if (before) $("said").textContent = is("node") && state.node !== null ? $("pane").querySelector("h2").textContent : is("pass") ? $("what").textContent : "";
  writeAddress();
}

/** Where an element stands on the sheet: the middle of its upper edge. */
function topOf(e) {
  const here = e === null ? null : present(e);
  if (here === null) return null;
  const frame = laid.frames.find(({ level }) => level.element === here);
  if (frame) return [frame.x + frame.width / 2, frame.y];
  const box = world.boxes[now().boxOf.get(here)];
  if (!box || !laid.spots.has(box.spot)) return null;
  const [x, y] = laid.spots.get(box.spot);
  return [x, y - box.height / 2];
}

const letGo = { node: null, rule: null, line: null, event: null, find: "" };
function step(by) {
  const shown = shownStages(state.all);
  const at = shown.findLastIndex((i) => i <= state.pass);
  const next = shown[Math.min(shown.length - 1, Math.max(0, at + by))];
  if (next !== state.pass) change({ pass: next, rule: null });
}
function walk(down) {
  if (state.node === null || !now().boxOf.has(state.node)) return change({ node: world.boxes[now().boxes[0]]?.element ?? null, rule: null, line: null });
  const next = neighbours(state.node)[down ? 1 : 0][0];
  if (next !== undefined) change({ node: next });
}
function nextFound(by) {
  if (!found.length) goElsewhere();
  else change({ node: found[(Math.max(-1, found.indexOf(state.node) + (found.includes(state.node) || by > 0 ? by : 0)) + found.length) % found.length], rule: null, line: null, tab: "graph" });
}
/** To the pass where there is what is searched for. */
function goElsewhere() {
  const other = elsewhere(state.find);
  if (other) change({ pass: other.pass, rule: other.rule ?? null, find: other.find ?? state.find, node: null, line: null, tab: "graph" });
}
/** Open the box that is chosen: a level in its place, or a fused node; close what is open. */
function openChosen() {
  const here = present(state.node);
  if (here === null) return;
  const { level, inside } = elements[here];
  if (level) turnLevels([level], now().members.has(level));
  else if (state.world !== "open" && inside) change({ world: "open", node: here });
}
function nextTab(by) {
  const at = TABS.findIndex(([id]) => id === state.tab) + by + TABS.length;
  change({ tab: TABS[at % TABS.length][0] });
  $(`tab-${state.tab}`).focus();
}
/** Choose the next of those that a pass has changed. */
function nextChange() {
  const all = changes().map(([e]) => e);
  if (all.length) change({ node: all[(all.indexOf(state.node) + 1) % all.length], rule: null, line: null, tab: "graph" });
}
const middle = () => [size.width / 2, size.height / 2];
function pan(x, y) { view.x += x; view.y += y; place(); }
const PANS = { ArrowLeft: [80, 0], ArrowRight: [-80, 0], ArrowUp: [0, 80], ArrowDown: [0, -80] };

const KEYS = {
  ArrowLeft: () => step(-1), ArrowRight: () => step(1), ArrowUp: () => walk(false), ArrowDown: () => walk(true),
  "/": () => { $("find").focus(); $("find").select(); }, f: fit, n: nextChange, c: () => turn("closed"), s: turnTrio, "[": () => stepRewrite(-1), "]": () => stepRewrite(1), Enter: openChosen, g: () => turn("open"), Escape: () => change(letGo), "+": () => zoom(1.3, ...middle()), "-": () => zoom(1 / 1.3, ...middle()),
};
TABS.forEach(([id], i) => { KEYS[String(i + 1)] = () => change({ tab: id }); });

function begin() {
  $("title").textContent = data.title;
  document.title = data.title;
  $("sizes").textContent = sizesText();
  $("colour").append(...COLOURS.map(([id, text]) => html("option", { value: id }, text)));
  $("tabs").append(...TABS.map(([id, text]) => html("button", { id: `tab-${id}`, role: "tab", "aria-controls": `panel-${id}`, onclick: () => change({ tab: id }) }, text)));
  $("worlds").append(...(WORLDS.length > 1 ? WORLDS.map(([id, text, title]) => html("button", { "data-world": id, title, onclick: () => change({ world: id }) }, text)) : []));
  $("graph").addEventListener("wheel", (event) => {
    event.preventDefault();
    const r = $("graph").getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), event.clientX - r.left, event.clientY - r.top);
  }, { passive: false });
  let drag = null;
  $("graph").addEventListener("pointerdown", (event) => { drag = { x: event.clientX, y: event.clientY, far: 0, on: event.target.closest("[data-node]") }; });
  $("graph").addEventListener("pointermove", (event) => {
    const over = event.target.closest?.("[data-node]");
    const edge = event.target.closest?.("[data-tip]");
    $("hover").textContent = drag ? "" : edge && !over ? edge.dataset.tip : over ? tip(Number(over.dataset.node.slice(1)), over.getAttribute("aria-label") ?? name(Number(over.dataset.node.slice(1)))) : "";
    if (!drag) return;
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    Object.assign(drag, { x: event.clientX, y: event.clientY, far: drag.far + Math.abs(dx) + Math.abs(dy) });
    if (drag.far < 4) return;
    $("graph").setPointerCapture(event.pointerId);
    $("graph").classList.add("dragged");
    pan(dx, dy);
  });
  $("graph").addEventListener("pointerup", () => {
    if (drag && drag.far < 4) change({ node: drag.on ? Number(drag.on.dataset.node.slice(1)) : null, rule: null, line: null }, true);
    drag = null;
    $("graph").classList.remove("dragged");
  });
  $("graph").addEventListener("pointerleave", () => { $("hover").textContent = ""; });
  $("graph").addEventListener("dblclick", (event) => {
    if (event.target.closest("[data-node]")) openChosen();
  });
  // On the map, what is pointed at comes into the middle.
  const go = (event) => {
    if (!event.buttons) return;
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform($("map").firstChild.getScreenCTM().inverse());
    Object.assign(view, { x: size.width / 2 - at.x * view.k, y: size.height / 2 - at.y * view.k });
    place();
  };
  for (const moved of ["pointerdown", "pointermove"]) $("map").addEventListener(moved, go);
  beginPanes();
  $("rewrites").addEventListener("click", () => stepRewrite(1));
  $("changes").addEventListener("click", nextChange);
  $("help").addEventListener("click", () => { change({ ...letGo, panes: hasPane("d") ? state.panes : `${state.panes}d` }); $("pane").focus(); });
  $("graph").addEventListener("focus", () => { if (state.node === null && $("graph").matches(":focus-visible")) $("hover").textContent = "↑ ↓ choose a node, Enter opens it, f shows all, ⇧ ← ↑ → ↓ move the graph"; });
  $("graph").addEventListener("blur", () => { $("hover").textContent = ""; });
  $("other").addEventListener("click", goElsewhere);
  new ResizeObserver(() => {
    const first = !size.width;
    measure();
    if (!first) return place();
    makeRoom();
    begun();
    if (state.node !== null) reveal(state.node);
  }).observe($("stage"));
  new ResizeObserver(seePass).observe($("list"));
  $("fit").addEventListener("click", fit);
  $("in").addEventListener("click", () => zoom(1.3, ...middle()));
  $("out").addEventListener("click", () => zoom(1 / 1.3, ...middle()));
  $("find").addEventListener("input", () => change({ find: $("find").value, rule: null, line: null }));
  $("find").addEventListener("keydown", (event) => { if (event.key === "Enter") nextFound(event.shiftKey ? -1 : 1); });
  $("filter").addEventListener("input", () => change({ filter: $("filter").value }));
  $("gone").addEventListener("change", () => change({ gone: $("gone").checked }));
  $("all").addEventListener("change", () => change({ all: $("all").checked }));
  $("colour").addEventListener("change", () => change({ colour: $("colour").value }));
  $("theme").addEventListener("change", () => change({ theme: $("theme").value }));
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea");
    if (event.ctrlKey || event.metaKey || event.altKey || (typing && event.key !== "Escape")) return;
    if (event.shiftKey && PANS[event.key] && state.tab === "graph") return pan(...PANS[event.key]);
    const scrolls = event.key.startsWith("Arrow") && (state.tab !== "graph" || event.target.closest("aside, .code")) && /Up|Down/.test(event.key);
    const pressed = event.key === "Enter" && (state.tab !== "graph" || event.target.closest("button, summary"));
    if (!KEYS[event.key] || scrolls || pressed) return;
    event.preventDefault();
    if (/Left|Right/.test(event.key) && event.target.closest("#tabs")) return nextTab(event.key === "ArrowRight" ? 1 : -1);
    if (typing) event.target.blur();
    KEYS[event.key]();
  });
  window.addEventListener("hashchange", () => { readAddress(); show(null); });
  readAddress();
  show(null);
}
begin();
