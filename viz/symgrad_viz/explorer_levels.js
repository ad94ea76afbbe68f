// Levels: parts, scopes, and what is put together where a level has too much; open or closed each.

const TAKEN_IN = 40; // boxes that can be taken in at once
const MANY_LOOSE = 10; // beside scopes
const ALIKE = 6; // so many scopes that differ by a number are put together
const NAMED = 4; // stubs above one box; the last stands for all others
const SMALL = 4000; // spots up to which all stages lie on one sheet, where every node keeps its place

class Level {
  constructor(kind, title, around) { Object.assign(this, { kind, title, around, inside: [], spots: [], depth: around ? around.depth + 1 : 0 }); }
  get isOpen() { return !this.around || this.kind !== "scope"; }
  /** All spots in it, whatever is open. */
  *all() { yield* this.spots; for (const level of this.inside) yield* level.all(); }
  /** The title with the layer that it is of: its class, its sizes, its parameters. */
  get label() { return this.about ? `${this.title} · ${this.about}` : this.title; }
  get path() { return this.around ? [...this.around.path, this] : []; }
  get code() { return this.element - elements.first; }
}
elements.first = elements.length; // of the levels, which come after all nodes

/** The levels of a drawing, from its stages together: the last says where a spot is. */
function treeOf(base) {
  const root = new Level("root", "", null);
  const at = new Map([["", root]]);
  const reach = (path) => {
    const key = path.join("\n");
    if (!at.has(key)) {
      const around = reach(path.slice(0, -1));
      const level = new Level(around === root && PART_KINDS.includes(path[0]) ? path[0] : "scope", path.length === 1 ? base.titles[path[0]] ?? path[0] : path.at(-1), around);
      level.about = base.about[key];
      around.inside.push(level);
      at.set(key, level);
    }
    return at.get(key);
  };
  const where = new Map();
  const above = new Map();
  for (const stage of new Set(base.stages)) {
    for (const b of stage.boxes) where.set(base.boxes[b].spot, base.boxes[b]);
    for (const e of stage.edges) { const { tail, head, carried } = base.edges[e]; if (!carried) into(above, head, tail); }
  }
  for (const [spot, tails] of above) above.set(spot, [...new Set(tails)]);
  base.order = new Map(inOrder([...where.keys()].sort((a, b) => a - b), above).map((spot, i) => [spot, i]));
  for (const spot of base.order.keys()) reach(base.levels[where.get(spot).level]).spots.push(spot);
  root.inside.sort((a, b) => PART_KINDS.indexOf(a.kind) - PART_KINDS.indexOf(b.kind));
  base.where = where;
  root.inside.forEach((part) => simplified(part, base));
  simplified(root, base);
  for (const part of [root, ...root.inside]) divide(part, base, above);
  base.levelOf = new Map();
  const enter = (level) => {
    if (level !== root) {
      level.element = elements.length;
      level.spot = base.spots + elements.length;
      const inside = [...new Set([...level.all()].map((s) => where.get(s).element))];
      elements.push({ op: `${level.path[0].title}: ${level.title}`, name: level.title, group: true, level, inside });
    }
    for (const spot of level.spots) base.levelOf.set(spot, level);
    level.inside.forEach(enter);
  };
  enter(root);
  base.root = root;
  return root;
}
const PART_KINDS = ["forward", "backward", "update"];

/** Without levels that hold one other and nothing else, or but one box. */
function simplified(level, base) {
  level.inside = level.inside.flatMap((inner) => {
    simplified(inner, base);
    if (inner.kind !== "scope") return [inner];
    if (!inner.inside.length && inner.spots.length === 1) { level.spots.push(inner.spots[0]); return []; }
    if (inner.inside.length === 1 && !inner.spots.length) {
      const [only] = inner.inside;
      Object.assign(only, { title: `${inner.title} / ${only.title}`, about: only.about ?? inner.about, around: level });
      return [only];
    }
    return [inner];
  });
}
/** Put together what is alike, or what follows each other, until a level has no more than can be taken in. */
function divide(level, base, above) {
  const parts = () => [...level.spots, ...level.inside];
  if (parts().length > TAKEN_IN || (level.inside.some((l) => !l.isOpen) && level.spots.length > MANY_LOOSE)) {
    const groups = new Map(parts().map((part) => [part, kinOf(part, base)]));
    const fits = (all) => all.length >= ALIKE && all.length < groups.size;
    const kin = new Map();
    for (const [part, title] of groups) if (title) into(kin, title, part);
    const together = [...kin].filter(([, all]) => fits(all));
    const titled = (title, all) => (all[0] instanceof Level ? `${title} ×${all.length}` : title);
    if (together.length && together.length < 4 * TAKEN_IN) {
      if (!goesBack(level, together, above)) together.forEach(([title, all]) => gather(level, titled(title, all), all));
      else {
        // The expressions of a line that runs again and again take turns.
        const lines = new Map();
        for (const [title, all] of together) if (!(all[0] instanceof Level)) into(lines, title.split("  ")[0], [title, all]);
        const rounds = [...lines].filter(([, of]) => of.length > 1 && of.every(([, all]) => all.length === of[0][1].length));
        const whole = rounds.map(([, of]) => [of.map(([title]) => title).reduce((a, b) => (b.length > a.length ? b : a)), of.flatMap(([, all]) => all), of]).filter(([, all]) => fits(all));
        if (whole.length && !goesBack(level, whole, above)) for (const [title, all, of] of whole) gather(level, `${title} ×${of[0][1].length}`, all).period = of.length;
      }
    }
    if (parts().length > TAKEN_IN) {
      const middle = (part) => (part instanceof Level ? [...part.all()].map((s) => base.order.get(s)).sort((a, b) => a - b) : [base.order.get(part)]);
      const order = parts().map((part) => [middle(part), part]).map(([all, part]) => [all[all.length >> 1], part]).sort(([a], [b]) => a - b).map(([, part]) => part);
      const [least, period] = [Math.ceil(order.length / Math.min(20, Math.ceil(Math.sqrt(order.length)))), level.period ?? 1];
      const size = Math.ceil(least / period) * period;
      const first = level.firstRound ?? 1;
      for (let i = 0; i < order.length; i += size) {
        const run = order.slice(i, i + size);
        const from = first + i / period;
        const title = level.period ? `rounds ${from} … ${from + run.length / period - 1}` : [...new Set([run[0], run.at(-1)].map((part) => titleOf(part, base)))].join(" … ");
        if (run.length > 1) Object.assign(gather(level, title, run), level.period ? { period, firstRound: from } : {});
      }
    }
  }
  for (const inner of level.inside) divide(inner, base, above);
}
function gather(level, title, parts) {
  const inner = new Level("scope", title, level);
  const chosen = new Set(parts);
  for (const part of parts) if (part instanceof Level) { part.around = inner; inner.inside.push(part); } else inner.spots.push(part);
  level.spots = level.spots.filter((s) => !chosen.has(s));
  level.inside = [...level.inside.filter((l) => !chosen.has(l)), inner];
  return inner;
}
const titleOf = (part, base) => (part instanceof Level ? part.title.split(" … ")[0] : base.where.get(part).lines[0].slice(0, 24));
/** What a part of a level is alike with: the name of a scope without its number, or the line that wrote a node. */
function kinOf(part, base) {
  if (part instanceof Level) return /\d/.test(part.title) ? part.title.replace(/[._\- ]*\d+/g, "") || part.title : null;
  const box = base.where.get(part);
  const [place] = places(box.element);
  return place && box.kind !== "placeholder" ? `${placeText(place)}${place.text ? `  ${place.text}` : ""}` : null;
}
/** Whether a way would lead out of what is put together and into it again. */
function goesBack(level, together, above) {
  const of = new Map();
  const enter = (key, part) => { for (const spot of part instanceof Level ? part.all() : [part]) of.set(spot, key); };
  [...level.spots, ...level.inside].forEach((part) => enter(part, part));
  for (const [title, all] of together) for (const part of all) enter(title, part);
  const between = new Map();
  for (const [spot, key] of of) for (const tail of above.get(spot) ?? []) if (of.has(tail) && of.get(tail) !== key) into(between, key, of.get(tail));
  const order = new Map(inOrder([...new Set(of.values())], between).map((key, i) => [key, i]));
  return [...between].some(([key, tails]) => tails.some((tail) => order.get(tail) > order.get(key)));
}

/** What to open first: whatever can be taken in, level by level, all of one parent or none. */
function firstOpen(base, stage) {
  const there = new Set(stage.boxes.map((b) => base.boxes[b].spot));
  const here = (level) => level.spots.filter((s) => there.has(s)).length + level.inside.filter(isHere).length;
  const isHere = (level) => level.spots.some((s) => there.has(s)) || level.inside.some(isHere);
  const open = new Set();
  let waiting = [base.root];
  let shown = 0;
  const always = (level) => (level.inside.some((l) => l.isOpen) ? level.inside.filter((l) => l.isOpen).flatMap((l) => [l, ...always(l)]) : []);
  waiting = [base.root, ...always(base.root)];
  shown = waiting.reduce((sum, level) => sum + here(level) - level.inside.filter((l) => l.isOpen && isHere(l)).length, 0);
  while (waiting.length) {
    const next = [];
    for (const level of waiting) {
      const inner = level.inside.filter((l) => !l.isOpen && isHere(l));
      const more = inner.reduce((sum, l) => sum + here(l) - 1, 0);
      if (!inner.length || shown + more > TAKEN_IN) continue;
      shown += more;
      inner.forEach((l) => open.add(l));
      next.push(...inner);
    }
    waiting = next;
  }
  return open;
}

/** A drawing with some levels open: what is in the others is one box each. */
class View {
  constructor(base, isOpen) {
    Object.assign(this, { base, isOpen, boxes: [...base.boxes], edges: [], closed: new Map(), made: new Map(), keys: new Map(), pairs: new Map(), layouts: new Map() });
    this.stages = base.stages.map(() => null);
    this.stages = new Proxy(this.stages, { get: (all, i) => (typeof i === "string" && /^\d+$/.test(i) ? (all[i] ??= this.stage(Number(i))) : all[i]) });
  }
  /** The outermost closed level that a spot is in, if any. */
  around(spot) {
    if (!this.closed.has(spot)) this.closed.set(spot, this.base.levelOf.get(spot)?.path.find((level) => !level.isOpen && !this.isOpen(level)) ?? null);
    return this.closed.get(spot);
  }
  stage(i) {
    const { base } = this;
    const own = base.stages[i];
    const members = new Map();
    const boxes = [];
    for (const b of own.boxes) {
      const level = this.around(base.boxes[b].spot);
      if (level) into(members, level, b);
      else boxes.push(b);
    }
    const before = i ? this.stages[i - 1] : null;
    const same = i > 0 && base.stages[i] === base.stages[i - 1];
    const changed = new Set();
    for (const [level, inside] of members) {
      const box = this.box(level, inside);
      boxes.push(box);
      const had = before?.members.get(level);
      if (had && !same && (had.length !== inside.length || inside.some((b, k) => base.boxes[b].element !== base.boxes[had[k]].element))) changed.add(level.element);
    }
    const shown = (b) => !this.around(base.boxes[b].spot);
    const stage = { base: own, members, boxes, ghosts: state.gone ? own.ghosts.filter(shown) : [], left: own.left };
    stage.boxOf = new Map(boxes.map((b) => [this.boxes[b].element, b]));
    stage.spotOf = new Map(boxes.map((b) => [this.boxes[b].spot, b]));
    stage.added = [...own.added.filter((e) => stage.boxOf.has(e)), ...changed];
    stage.fresh = new Set(stage.added);
    const grouped = boxes.map((b) => this.boxes[b]).filter((b) => b.group !== null);
    stage.groupOf = new Map(grouped.map((b) => [b.element, b.group]));
    stage.groups = new Set(stage.groupOf.values());
    stage.freshGroups = new Set([...stage.groups].filter((g) => i && !same && !base.stages[i - 1].groups.has(g)));
    const edges = new Set();
    for (const e of own.edges) for (const link of this.linksOf(e)) edges.add(link);
    stage.edges = [...edges];
    return stage;
  }
  /** The box of a closed level: its name, what is in it. */
  box(level, inside) {
    const all = inside.map((b) => this.base.boxes[b]);
    const part = level.path[0].kind;
    const leaves = all.filter((b) => LEAF_KINDS.includes(b.kind));
    const computed = all.filter((b) => !LEAF_KINDS.includes(b.kind) && !HANDED.includes(b.kind));
    const ops = new Map();
    for (const b of computed) ops.set(elements[b.element].op, (ops.get(elements[b.element].op) ?? 0) + 1);
    const groups = new Set(all.map((b) => b.group).filter((g) => g !== null && elements[g].op === "fused"));
    const fused = (ops.get("fused") ?? 0) + groups.size;
    ops.delete("fused");
    const told = [...ops].sort((a, b) => b[1] - a[1]);
    const listed = told.slice(0, 3).map(([op, n]) => (n > 1 ? `${op} ×${n}` : op)).join(", ") + (told.length > 3 ? ", …" : "");
    const marks = all.flatMap((b) => b.lines.filter((line) => line.startsWith("⟶")));
    const [title, quoted] = level.title.split("  ");
    const counts = [computed.length && count(computed.length, "op"), ...Object.entries(LEAF_WORDS).map(([kind, word]) => [leaves.filter((b) => b.kind === kind).length, part === "update" && kind === "variable" ? "state array" : word]).map(([n, word]) => n && count(n, word))].filter(Boolean).join(", ");
    const lines = [cut(title, 44), quoted && cut(quoted, 60), level.about, counts, fused && (groups.size ? `in ${count(fused, "fused group")}` : `${fused} fused`), listed, ...marks.slice(0, 2), marks.length > 2 && `⟶ ${marks.length - 2} more`].filter(Boolean).map(String);
    const key = `${level.element}\n${lines.join("\n")}`;
    if (!this.made.has(key)) {
      this.made.set(key, this.boxes.push({ element: level.element, kind: part === "backward" || part === "update" ? part : "op", output: marks.length ? 1 : 0, ...sizeOf("op", lines), lines, call: `${level.title}\n${counts}`, spot: level.spot, group: null, level }) - 1);
    }
    return this.made.get(key);
  }
  /** What stands for a spot, and the open frames that this is in, from the outermost. */
  shown(spot) {
    const closed = this.around(spot);
    return [closed ? closed.spot : spot, (closed ? closed.around : this.base.levelOf.get(spot)).path];
  }
  /** The links that an edge is drawn as: within each frame, from what names the value to who reads it. */
  linksOf(e) {
    const edge = this.base.edges[e];
    const pair = `${edge.tail} ${edge.head} ${edge.carried} ${this.around(edge.head) ? "" : edge.operand}`;
    if (!this.pairs.has(pair)) this.pairs.set(pair, [...this.decomposed(edge)]);
    return this.pairs.get(pair);
  }
  *decomposed({ tail, head, carries, operand, carried }) {
    const [[from, above], [to, below]] = [this.shown(tail), this.shown(head)];
    if (from === to) return;
    const told = { tail: from, head: to, carries: data.texts[carries], operand: "", carried };
    if (carried) { yield this.link({ ...told, from: `s${from}`, to: `s${to}`, level: null }); return; }
    let common = 0;
    while (common < above.length && above[common] === below[common]) common++;
    const across = above[0] !== below[0];
    const own = to === head ? operand : "";
    if (across) { yield this.link({ ...told, from: `i${below.at(-1)?.element}:${from}:${to}`, to: `s${to}`, level: below.at(-1), operand: own }); return; }
    let inner = `s${from}`;
    for (const level of above.slice(common).reverse()) {
      yield this.link({ ...told, from: inner, to: `o${level.element}:${from}`, level });
      inner = `s${level.spot}`;
    }
    const heads = below.slice(common);
    yield this.link({ ...told, from: inner, to: heads.length ? `s${heads[0].spot}` : `s${to}`, level: above[common - 1], operand: heads.length ? "" : own });
    for (const [i, level] of heads.entries()) yield this.link({ ...told, from: `i${level.element}:${from}`, to: i + 1 < heads.length ? `s${heads[i + 1].spot}` : `s${to}`, level, operand: i + 1 < heads.length ? "" : own });
  }
  link(link) {
    const key = `${link.from}>${link.to}`;
    // What several values take their way along begins and ends at frames.
    const end = (id, own) => (id[0] === "s" ? Number(id.slice(1)) : own);
    if (!this.keys.has(key)) this.keys.set(key, this.edges.push({ ...link, key, tail: end(link.from, link.tail), head: end(link.to, link.head) }) - 1);
    return this.keys.get(key);
  }
  /** The places for a stage; those of all stages together where there is room for that. */
  layout(pass) {
    const all = state.gone && this.base.where.size <= SMALL;
    const key = all ? "all" : `${this.base.first[pass]}`;
    if (!this.layouts.has(key)) this.layouts.set(key, this.laidOut(all ? [...new Set(this.base.first)].reverse() : [pass]));
    return this.layouts.get(key);
  }
  laidOut(passes) {
    const sizes = new Map();
    const edges = new Set();
    const groupOf = new Map(); // of spots, in the last stage in which they are in one
    const lasting = new Set(this.stages[passes[0]].boxes.map((b) => this.boxes[b].spot));
    for (const pass of passes) {
      const stage = this.stages[pass];
      for (const b of stage.boxes) if (this.boxes[b].group !== null && !groupOf.has(this.boxes[b].spot)) groupOf.set(this.boxes[b].spot, this.boxes[b].group);
      for (const b of [...stage.boxes, ...stage.ghosts]) {
        const { spot, width, height, lines } = this.boxes[b];
        const size = sizes.get(spot) ?? { width: 0, height: 0, called: 0 };
        sizes.set(spot, { width: Math.max(size.width, width), height: Math.max(size.height, height), called: Math.max(size.called, stubText(lines).length) });
      }
      for (const e of stage.edges) edges.add(e);
    }
    const items = new Map([...sizes].map(([spot, size]) => [`s${spot}`, { id: `s${spot}`, spot, ...size }]));
    const within = new Map();
    for (const [spot] of [...sizes].sort(([a], [b]) => this.place(a) - this.place(b))) into(within, this.holder(spot), items.get(`s${spot}`));
    const links = new Map();
    const item = (id, level) => {
      if (!items.has(id)) {
        const [kind, tail] = [id[0], Number(id.split(":")[1])];
        if (kind === "s") return null; // a frame, which is entered below
        const called = (sizes.get(tail)?.called ?? 4);
        items.set(id, kind === "i" ? { id, stub: { spot: tail }, width: stubWidth(called), height: 14 } : { id, leaves: true, width: 8, height: 0 });
        into(within, level, items.get(id));
      }
      return items.get(id);
    };
    const carried = [];
    const named = new Map(); // of each that reads values from afar: those that are named, and one for the rest
    for (const e of edges) {
      const edge = this.edges[e];
      if (edge.from[0] === "i") {
        into(named, edge.to, edge);
        if (named.get(edge.to).length > NAMED) continue;
      }
      if (edge.carried) { carried.push(edge); continue; }
      into(links, edge.level ?? this.base.root, edge);
      for (const id of [edge.from, edge.to]) item(id, edge.level ?? this.base.root);
    }
    // Frames that hold something, from the inside out.
    const found = { spots: new Map(), frames: [], ways: new Map(), grounds: new Map(), named };
    const arrange = (level) => {
      const own = within.get(level) ?? [];
      for (const inner of level.inside) {
        if (!inner.isOpen && !this.isOpen(inner)) continue;
        const block = arrange(inner);
        if (!block) continue;
        const frame = { id: `s${inner.spot}`, spot: inner.spot, frame: inner, block, width: Math.max(block.width + 2 * ROOM.edge, 7.6 * inner.label.length + 40), height: block.height + ROOM.edge + ROOM.head, called: Math.min(STUB, inner.title.length) };
        items.set(frame.id, frame);
        own.push(frame);
      }
      if (!own.length) return null;
      if (level === this.base.root && own.every((i) => i.frame)) return { items: own, links: [] };
      const between = (links.get(level) ?? []).map((edge) => ({ edge, tail: items.get(edge.from), head: items.get(edge.to) })).filter(({ tail, head }) => tail && head && tail !== head);
      const [parts, ways] = inBlocks(own, between, groupOf, lasting);
      for (const item of parts) if (item.group !== undefined) item.level = level.element;
      return arranged(parts, ways);
    };
    const whole = arrange(this.base.root) ?? { items: [], links: [], width: 0, height: 0 };
    if (whole.items.length && whole.items.every((i) => i.frame && i.frame.isOpen)) {
      const { width, height, columns } = inColumns(whole.items);
      let left = ROOM.margin;
      for (const column of columns) {
        let top = ROOM.margin;
        for (const frame of column) { Object.assign(frame, { x: left + frame.width / 2, y: top + frame.height / 2 }); top += frame.height + ROOM.margin; }
        left += Math.max(...column.map((f) => f.width)) + ROOM.margin;
      }
      found.sheet = [width, height];
    } else {
      found.sheet = [whole.width + 2 * ROOM.margin, whole.height + 2 * ROOM.margin];
      shift(whole.items, whole.links, ROOM.margin, ROOM.margin);
    }
    this.settle(whole, found);
    carried.forEach((edge, i) => this.carry(edge, i, found, sizes));
    return found;
  }
  /** Give all their places on the sheet; those of frames first, from which the inner ones count. */
  settle({ items, links }, found) {
    const heads = new Map();
    for (const { edge, tail, head, way, from } of links) {
      if (tail.door) {
        const told = found.ways.get(edge.key);
        told.way = [...told.way, tail.x, tail.top, ...way];
        into(heads, head, told);
        continue;
      }
      const told = { begin: tail, way, end: 0, stub: tail.stub ? [tail.x, tail.y] : null, names: (tail.stub ?? from)?.spot, leaves: head.leaves };
      if (edge.from[0] === "i") {
        const all = found.named.get(edge.to);
        if (all.length > NAMED && all[NAMED - 1] === edge) told.more = all.length - NAMED + 1;
      }
      found.ways.set(edge.key, told);
      into(heads, head, told);
    }
    for (const [head, ways] of heads) {
      const last = ({ begin, way }) => (way.length ? way.at(-2) : begin.x);
      ways.sort((a, b) => last(a) - last(b));
      const wide = Math.min(head.width, 160) * 0.6;
      ways.forEach((way, i) => { way.end = head.x + wide * ((i + 1) / (ways.length + 1) - 0.5); way.down = head.y - head.height / 2; way.head = head; });
    }
    for (const item of items) {
      if (item.spot !== undefined) found.spots.set(item.spot, [item.x, item.y]);
      if (item.group !== undefined) settleBlock(item, found, (block) => this.settle(block, found));
      if (!item.frame) continue;
      const { frame: level, block, width, height } = item;
      const [x, y] = [item.x - width / 2, item.y - height / 2];
      found.frames.push({ level, kind: level.kind, title: level.label, x, y, width, height });
      shift(block.items, block.links, x + (width - block.width) / 2, y + ROOM.head);
      this.settle(block, found);
    }
  }
  /** The way of what is carried, up to where the next step begins, beside what lies between. */
  carry(edge, i, found, sizes) {
    const ends = [edge.head, edge.tail].map((s) => found.spots.get(s));
    if (ends.some((p) => !p)) return;
    const [[x, top], [u, bottom]] = ends;
    let right = Math.max(x + sizes.get(edge.head).width / 2, u + sizes.get(edge.tail).width / 2);
    const between = [...found.spots].filter(([s, [, y]]) => sizes.has(s) && y >= top && y <= bottom).sort((a, b) => a[1][0] - b[1][0]);
    for (const [s, [at]] of between) {
      const wide = sizes.get(s).width / 2;
      if (at - wide < right + ROOM.edge && right < at + wide) right = at + wide;
    }
    right += ROOM.edge + 5 * (i % 4);
    const begin = bottom + sizes.get(edge.tail).height / 2 + 7;
    found.ways.set(edge.key, { way: [right, begin, right, top - sizes.get(edge.head).height / 2 - ROOM.edge], end: x, stub: null, names: edge.tail });
    found.sheet[0] = Math.max(found.sheet[0], right + ROOM.margin);
  }
  holder(spot) { return this.base.levelOf.get(spot) ?? elements[spot - this.base.spots]?.level.around ?? this.base.root; }
  place(spot) { return this.base.order.get(spot) ?? Math.min(...[...elements[spot - this.base.spots].level.all()].map((s) => this.base.order.get(s))); }
}
const HANDED = ["carry", "slice"]; // given to a step of a loop, not computed in it
const LEAF_WORDS = { placeholder: "input", variable: "parameter", constant: "constant" }, LEAF_KINDS = Object.keys(LEAF_WORDS);
const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const stubText = (lines) => cut(lines[0].split(" = ")[0], STUB);

// ---- which levels are open ----------------------------------------------------------------------

Object.values(bases).forEach(treeOf);
const last = whole.stages.at(-1);
// How much is shown, from the least to the most.
const WORLDS = [["closed", "overview", "few boxes, each of a scope or a line of yours (c)"], ["full", "nodes", "every node; a fused group or a loop is one (g)"], ["open", "inside groups", "every op, those in fused groups and in loops too (g)"]]
  .filter(([id]) => (id === "closed" ? [...levelsOf(whole)].length : bases[id]));
function* levelsOf(base, level = base.root) { for (const inner of level.inside) { if (!inner.isOpen) yield inner; yield* levelsOf(base, inner); } }
const codes = (levels) => [...levels].map((l) => l.code).sort((a, b) => a - b).join(".");
start.opened = codes(firstOpen(whole, last));
start.world = last.boxes.length > TAKEN_IN && WORLDS[0][0] === "closed" ? "closed" : bases.open ? "open" : "full";

const views = new Map();
/** The drawing that a state asks for: some levels open, or all. */
function viewOf({ world: wanted, opened, gone }) {
  const key = `${wanted} ${wanted === "closed" ? opened : ""} ${gone}`;
  if (!views.has(key)) {
    if (views.size > 12) views.delete(views.keys().next().value);
    const open = new Set(opened.split(".").map(Number));
    views.set(key, new View(bases[wanted] ?? whole, wanted === "closed" ? (level) => open.has(level.code) : () => true));
  }
  return views.get(key);
}
/** Open or close levels, in place; of some others it is seen to that they are open. */
function turnLevels(levels, on, others = []) {
  const all = new Set(state.world === "closed" ? state.opened.split(".").filter(Boolean).map(Number) : [...levelsOf(whole)].map((l) => l.code));
  for (const level of levels) if (on) level.path.filter((l) => !l.isOpen).forEach((l) => all.add(l.code)); else for (const inner of [level, ...levelsOf(whole, level)]) all.delete(inner.code);
  for (const level of others) level.path.filter((l) => !l.isOpen).forEach((l) => all.add(l.code));
  change({ world: "closed", opened: [...all].sort((a, b) => a - b).join(".") });
}
