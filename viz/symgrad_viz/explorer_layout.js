"use strict";
// Where everything stands: layers from top to bottom (Sugiyama's method), frame within frame.

const ROOM = { x: 18, y: 34, edge: 14, head: 24, margin: 16 };
const SWEEPS = 8;
const REACH = 10; // a link over more ranks than this names its value again, as a stub
const READERS = 8; // so does one of a value that so many boxes of a frame read
const ASPECT = 1.4; // of the window, which frames and rows are to fill
const STUB = 24; // letters of a stub
const [LETTERS, SMALL_LETTERS, WIDE] = [12.5, 11.5, 0.602]; // sizes of letters; how wide one is
const LINE = 13.5;
const MOST_FAR = 28; // the largest letters of a name that is seen from afar

/** How wide a text is, in letters: those of East Asia take two places. */
const lettersOf = (text) => text.length + (text.match(/[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60]/g)?.length ?? 0);
/** How wide and high a box is: its first line is large, the others are small. */
function sizeOf(kind, [first, ...others]) {
  const wide = Math.max(lettersOf(first) * LETTERS, ...others.map((line) => lettersOf(line) * SMALL_LETTERS)) * WIDE;
  return { width: Math.round(wide * (kind === "placeholder" ? 1.3 : 1) + 18), height: Math.round(LINE * (1 + others.length) + 11 + (kind === "variable" ? 8 : 0)) };
}

/** A topological order: each after what it reads; of links that go in a ring, one is left out. */
function inOrder(items, above) {
  const [order, entered] = [[], new Set()];
  for (const root of items) {
    if (entered.has(root)) continue;
    entered.add(root);
    const stack = [[root, 0]];
    while (stack.length) {
      const top = stack.at(-1);
      const reads = above.get(top[0]) ?? [];
      const next = reads[top[1]++];
      if (next === undefined) order.push(stack.pop()[0]);
      else if (!entered.has(next)) { entered.add(next); stack.push([next, 0]); }
    }
  }
  return order;
}
const stubWidth = (letters) => letters * 11 * WIDE + 6;
function into(map, key, value) { if (map.has(key)) map.get(key).push(value); else map.set(key, [value]); }

/** The rank of each item: below all that it reads, and not far above those that read it. */
function ranked(items, links) {
  const above = new Map();
  for (const { tail, head } of links) into(above, head, tail);
  const order = inOrder(items, above);
  const at = new Map(order.map((item, i) => [item, i]));
  const [down, up] = [new Map(), new Map()];
  for (const { tail, head } of links) if (at.get(tail) < at.get(head)) { into(up, head, tail); into(down, tail, head); }
  for (const item of order) item.rank = (up.get(item) ?? []).reduce((most, t) => Math.max(most, t.rank + 1), 0);
  for (const item of order.reverse()) {
    const [reads, readers] = [up.get(item) ?? [], down.get(item)];
    if (readers && (reads.length < 2 || reads.every((t) => down.get(t).length === 1))) item.rank = readers.reduce((least, h) => Math.min(least, h.rank), Infinity) - 1;
  }
  // What comes into a group comes in at its beginning.
  if (items.some((item) => item.door)) {
    const least = items.reduce((few, item) => (item.door ? few : Math.min(few, item.rank)), Infinity);
    for (const item of items) item.rank = item.door ? 0 : item.rank + 1 - least;
  }
  // What leaves the frame leaves it at its end.
  const lowest = items.reduce((most, item) => Math.max(most, item.rank), 0);
  for (const item of items) if (item.leaves) item.rank = lowest + (items.some((i) => i.rank === lowest && !i.leaves) ? 1 : 0);
}

const mean = (spots, otherwise) => (spots.length ? spots.reduce((sum, s) => sum + s.x, 0) / spots.length : otherwise);

/** Give the items of one component their centres, from 0, 0 on, and each link its way. */
function layered(items, links) {
  ranked(items, links);
  const first = Math.min(...items.map((i) => i.rank));
  const layers = Array.from({ length: Math.max(...items.map((i) => i.rank)) - first + 1 }, () => []);
  const enter = (spot) => { Object.assign(spot, { above: [], below: [], up: 0, down: 0, x: 0 }); layers[spot.rank - first].push(spot); return spot; };
  items.forEach(enter);
  for (const link of links) {
    const { tail, head } = link;
    link.passes = [];
    if (tail.rank >= head.rank) continue; // against the order: it goes as it can
    for (let rank = tail.rank + 1; rank < head.rank; rank++) link.passes.push(enter({ rank, width: ROOM.x / 2, height: 0 }));
    [tail, ...link.passes, head].reduce((a, b) => { a.below.push(b); b.above.push(a); return b; });
  }
  const number = (layer) => layer.forEach((spot, i) => { spot.x = i; });
  layers.forEach(number);
  for (let sweep = 0; sweep <= SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      for (const spot of layer) spot.wanted = mean(down ? spot.above : spot.below, spot.x);
      layer.sort((a, b) => a.wanted - b.wanted);
      number(layer);
    }
  }
  let [top, gap] = [0, 0];
  for (const [i, layer] of layers.entries()) {
    const tallest = layer.reduce((most, s) => Math.max(most, s.height), 0);
    const [isDoor, isExit] = ["door", "exit"].map((kind, j) => (layers[i + j] ?? []).some((s) => s[kind]));
    let right = 0;
    for (const spot of layer) {
      spot.x = right + spot.width / 2;
      right += spot.width + ROOM.x;
      // Beside a frame that is open, others stand at its beginning.
      spot.y = tallest > 160 ? top + spot.height / 2 : top + tallest / 2;
      spot.under = tallest > 160 ? top + tallest : null;
    }
    gap = isDoor ? HULL.door : isExit ? HULL.exit : ROOM.y;
    top += tallest + gap;
  }
  // What is long is to be straight.
  for (const layer of layers) for (const s of layer) for (const t of s.above) s.up = Math.max(s.up, t.up + 1);
  for (const layer of [...layers].reverse()) for (const s of layer) for (const t of s.below) s.down = Math.max(s.down, t.down + 1);
  const long = (s) => s.up + s.down;
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      straighten(layer, layer.map((s) => {
        const [beside, other] = down ? [s.above, s.below] : [s.below, s.above];
        const longest = [...beside, ...other].reduce((most, t) => Math.max(most, long(t)), 0);
        return mean(beside.filter((t) => long(t) === longest), s.x);
      }), long);
    }
  }
  const all = layers.flat();
  const left = all.reduce((least, s) => Math.min(least, s.x - s.width / 2), Infinity);
  for (const s of all) s.x -= left;
  // Beside a tall frame an edge goes straight down, and then to its side: not behind the frame.
  const beside = ({ x, y, height, under }) => (under > y + height / 2 + ROOM.y ? [x, under] : []);
  for (const link of links) {
    const passed = link.passes.flatMap((s) => [s.x, s.y, ...beside(s)]);
    link.way = link.tail.rank < link.head.rank ? [...beside(link.tail), ...passed] : passed;
  }
  return { items, links, width: all.reduce((most, s) => Math.max(most, s.x + s.width / 2), 0), height: top - gap };
}

/** Move each spot as near to where it wants to be as those placed before it allow, long paths first. */
function straighten(layer, wanted, long) {
  const offsets = [0];
  for (let i = 1; i < layer.length; i++) offsets.push(offsets[i - 1] + (layer[i - 1].width + layer[i].width) / 2 + ROOM.x);
  const placed = [];
  for (const i of layer.map((_, i) => i).sort((a, b) => long(layer[b]) - long(layer[a]))) {
    let [low, high] = [0, placed.length];
    while (low < high) { const half = (low + high) >> 1; if (placed[half] < i) low = half + 1; else high = half; }
    let x = wanted[i];
    const [left, right] = [placed[low - 1], placed[low]];
    if (left !== undefined) x = Math.max(x, layer[left].x + offsets[i] - offsets[left]);
    if (right !== undefined) x = Math.min(x, layer[right].x + offsets[i] - offsets[right]);
    layer[i].x = x;
    placed.splice(low, 0, i);
  }
}

/** The items in groups that no link leads out of. */
function components(items, links) {
  const parent = new Map(items.map((i) => [i, i]));
  const find = (i) => { while (parent.get(i) !== i) { parent.set(i, parent.get(parent.get(i))); i = parent.get(i); } return i; };
  for (const { tail, head } of links) parent.set(find(head), find(tail));
  const found = new Map();
  for (const item of items) into(found, find(item), item);
  const of = new Map([...found.keys()].map((root) => [root, []]));
  for (const link of links) of.get(find(link.tail)).push(link);
  return [...found].map(([root, inside]) => [inside, of.get(root)]);
}

/** Lay out what is in one frame: rows of components. Links that reach too far become stubs. */
function arranged(items, links, inRows = true) {
  const readers = new Map();
  for (const { tail } of links) readers.set(tail, (readers.get(tail) ?? 0) + 1);
  ranked(items, links);
  const near = [];
  for (const link of links) {
    const far = link.head.rank - link.tail.rank > REACH || readers.get(link.tail) > READERS;
    if (!far || link.tail.stub || link.tail.door || link.head.leaves) { near.push(link); continue; }
    const stub = { id: `${link.tail.id}@${link.head.id}`, stub: link.tail, width: stubWidth(link.tail.called), height: 14 };
    items.push(stub);
    near.push(Object.assign(link, { from: link.tail, tail: stub }));
  }
  const parts = components(items, near).map(([inside, between]) => layered(inside, between));
  // Rows about as wide as they are high together, and never narrower than the widest.
  const area = parts.reduce((sum, p) => sum + (p.width + ROOM.x) * (p.height + ROOM.y), 0);
  const wide = inRows ? Math.max(Math.sqrt(area * ASPECT), ...parts.map((p) => p.width)) : Infinity;
  let [x, y, row, right] = [0, 0, 0, 0];
  for (const part of parts) {
    if (x && x + part.width > wide) { x = 0; y += row + ROOM.y; row = 0; }
    shift(part.items, part.links, x, y);
    right = Math.max(right, x + part.width);
    x += part.width + 2 * ROOM.x;
    row = Math.max(row, part.height);
  }
  return { items, links: near, width: right, height: y + row };
}
function shift(items, links, x, y) {
  for (const item of items) { item.x += x; item.y += y; }
  for (const link of links) link.way = link.way.map((n, i) => n + (i % 2 ? y : x));
}

/** The frames in columns that keep their order and fill the window best; the sheet's size. */
function inColumns(frames) {
  let best = null;
  for (let cut = 0; cut < 1 << Math.max(0, frames.length - 1); cut++) {
    const columns = [[]];
    frames.forEach((frame, i) => { if (i && cut & (1 << (i - 1))) columns.push([]); columns.at(-1).push(frame); });
    const sum = (list) => list.reduce((a, b) => a + b + ROOM.margin, ROOM.margin);
    const width = sum(columns.map((c) => Math.max(...c.map((f) => f.width))));
    const height = Math.max(...columns.map((c) => sum(c.map((f) => f.height))));
    const worth = Math.max(width / ASPECT, height);
    if (!best || worth < best.worth) best = { worth, width, height, columns };
  }
  return best;
}
