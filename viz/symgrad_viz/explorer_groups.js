// Groups: fused ops, loops and choices, whose members stand together in one frame.

const HULL = { side: 9, head: 23, foot: 9, door: 24, exit: 14 };
const ROOM_BESIDE = 3 * ROOM.edge; // in a loop, for what is carried

/** The items of a level, those of each group as one block, with doors for the links that lead in and out. */
function inBlocks(items, links, groupOf, lasting) {
  const members = new Map();
  for (const item of items) if (groupOf.has(item.spot) && !item.frame) into(members, groupOf.get(item.spot), item);
  const blockOf = new Map();
  for (const [group, own] of members) {
    if (own.length < 2) continue;
    const block = { id: `g${group}`, group, items: [], links: [], exits: new Map(), called: STUB };
    for (const item of [...own, ...amid(own, links, lasting)]) if (!blockOf.has(item)) { blockOf.set(item, block); block.items.push(item); }
  }
  if (!blockOf.size) return [items, links];
  const outer = [];
  for (const link of links) {
    const { edge, tail, head } = link;
    const [from, to] = [blockOf.get(tail), blockOf.get(head)];
    if (from && from === to) { from.links.push(link); continue; }
    if (from) {
      if (!from.exits.has(tail)) {
        const exit = { id: `x${tail.id}`, leaves: true, exit: true, width: 8, height: 0 };
        from.exits.set(tail, { tail, head: exit, edges: [] });
        from.items.push(exit);
        from.links.push(from.exits.get(tail));
      }
      from.exits.get(tail).edges.push(edge);
      link.tail = from;
    }
    if (to) {
      const door = { id: `d${edge.key}`, door: true, width: 8, height: 0 };
      to.items.push(door);
      to.links.push({ edge, tail: door, head });
      link.head = to;
    }
    outer.push(link);
  }
  for (const of of new Set(blockOf.values())) {
    const first = of.links.find(({ tail }) => tail.door);
    // Among the doors the title has a place of its own, so that no edge comes in behind it.
    if (first) {
      of.title = { id: `t${of.group}`, door: true, width: 7 * (grouped(of.group).length + 10), height: 14 };
      of.items.push(of.title);
      of.links.push({ tail: of.title, head: first.head });
    }
    of.block = arranged(of.items, of.links, !first);
    of.inset = first ? 2 : HULL.head;
    const beside = isLoop(of.group) ? ROOM_BESIDE : 0;
    of.width = Math.max(of.block.width + 2 * HULL.side + beside, 7 * (grouped(of.group).length + 12));
    of.height = of.block.height + of.inset + (of.exits.size ? 2 : HULL.foot);
  }
  return [[...new Set(items.map((item) => blockOf.get(item) ?? item))], outer];
}
/** What lies between members and is there in no later stage: of the formulas that they were before. */
function amid(own, links, lasting) {
  const reached = (from, to) => {
    const next = new Map();
    for (const link of links) into(next, link[from], link[to]);
    const seen = new Set();
    const stack = [...own];
    while (stack.length) for (const item of next.get(stack.pop()) ?? []) if (!seen.has(item) && !lasting.has(item.spot) && item.spot !== undefined && !item.frame) { seen.add(item); stack.push(item); }
    return seen;
  };
  const above = reached("head", "tail");
  return [...reached("tail", "head")].filter((item) => above.has(item));
}
/** Give what is in a block its places on the sheet, and what leads into it and out of it its whole way. */
function settleBlock(item, found, settle) {
  const { block, width, height, group, inset, title } = item;
  const [x, y] = [item.x - width / 2, item.y - height / 2];
  shift(block.items, block.links, isLoop(group) ? x + HULL.side : x + (width - block.width) / 2, y + inset);
  found.grounds.set(`${group} ${item.level}`, { rect: [x, y, x + width, y + height], at: title ? title.x - title.width / 2 : x + 6 });
  const own = [];
  for (const link of block.links) {
    if (link.edges) for (const { key } of link.edges) {
      const told = found.ways.get(key);
      if (!told.stub) Object.assign(told, { begin: link.tail, way: [...link.way, link.head.x, link.head.y, ...told.way] });
    } else if (link.edge) own.push(link);
    link.tail.top = y;
  }
  settle({ items: block.items, links: own });
}

/** The grounds of groups: one around those members that nothing else lies among, else one for each. */
function hullsOf(stage) {
  const found = new Map();
  const grouped = stage.boxes.filter((b) => world.boxes[b].group !== null);
  const keyOf = (b) => `${world.boxes[b].group} ${world.holder(world.boxes[b].spot).element}`;
  for (const b of grouped) into(found, keyOf(b), b);
  const others = grouped.length ? stage.boxes.map((b) => [b, sides(b)]) : [];
  const frames = laid.frames.map(({ x, y, width, height }) => [x, y, x + width, y + height]);
  const meet = ([l, t, r, b], [l2, t2, r2, b2]) => l < r2 && l2 < r && t < b2 && t2 < b;
  const within = ([l, t, r, b], [l2, t2, r2, b2]) => l2 <= l && t2 <= t && r2 >= r && b2 >= b;
  const free = (own, around) => !others.some(([b, at]) => meet(at, around) && !own.has(b)) && !frames.some((at) => meet(at, around) && !within(around, at));
  return [...found.values()].flatMap((all) => (all.length === 1 || free(new Set(all), rounded(all)) ? [all] : all.map((b) => [b]))).map((boxes) => {
    const key = boxes.join();
    const ground = boxes.length > 1 && laid.grounds.get(keyOf(boxes[0]));
    if (ground) return { boxes, key, ...ground };
    const rect = rounded(boxes);
    const wide = 7 * titleOfGroup(boxes, stage).length + 8;
    const own = new Set(boxes.map((b) => world.boxes[b].spot));
    const ways = [...own].flatMap((spot) => entering(spot)).filter((way) => !own.has(way.begin?.spot)).map((way) => between(way, rect[1] - 2, rect[1] + 16)).filter(Boolean);
    const covered = (x) => ways.filter(([a, b]) => b > x - 4 && a < x + wide).length;
    const [left, right] = [rect[0] + 6, rect[2] - wide];
    const spots = [left, ...ways.flatMap(([a, b]) => [b + 6, a - wide - 4]).filter((x) => x > left && x <= right), ...(right > left ? [right] : [])];
    let at = spots.reduce((best, x) => (covered(x) < covered(best) ? x : best), left);
    if (covered(at)) {
      // Wider than its members, if there is room: no edge is to cross its title.
      const x = Math.max(left, ...ways.map(([, b]) => b + 6));
      const wider = [rect[0], rect[1], Math.max(rect[2], x + wide), rect[3]];
      if (free(new Set(boxes), wider)) { rect[2] = wider[2]; at = x; }
    }
    return { boxes, rect, at, key };
  });
}
/** The ways that end at a spot. */
function entering(spot) {
  if (!laid.ends) { laid.ends = new Map(); for (const way of laid.ways.values()) if (way.head) into(laid.ends, way.head.spot, way); }
  return laid.ends.get(spot) ?? [];
}
/** From where to where, across, a way is between two heights. */
function between({ begin, way, end, head }, top, bottom) {
  if (!begin) return null;
  const points = [begin.x, begin.y + begin.height / 2, ...way, end, head.y - head.height / 2];
  const xs = [];
  for (let i = 0; i + 3 < points.length; i += 2) {
    const [x, y, u, v] = points.slice(i, i + 4);
    if (Math.max(y, v) < top || Math.min(y, v) > bottom) continue;
    for (let s = 0; s <= 1; s += 1 / 32) {
      const at = y + (v - y) * (1.5 * s * (1 - s) + s ** 3);
      if (at >= top && at <= bottom) xs.push(x + (u - x) * s * s * (3 - 2 * s));
    }
  }
  return xs.length ? [Math.min(...xs), Math.max(...xs)] : null;
}
/** Where a box lies: left, top, right, bottom. */
function sides(box) {
  const { spot, width: w, height: h } = world.boxes[box];
  const [x, y] = laid.spots.get(spot);
  return [x - w / 2, y - h / 2, x + w / 2, y + h / 2];
}
function rounded(boxes) {
  const all = boxes.map(sides);
  const [l, t, r, b] = [0, 1, 2, 3].map((i) => Math[i < 2 ? "min" : "max"](...all.map((at) => at[i])));
  return [l - HULL.side, t - HULL.head, r + HULL.side, b + HULL.foot];
}
/** The ground on which members of a group stand together. */
function hull({ boxes, rect: [l, t, r, b] }) {
  const { group } = world.boxes[boxes[0]];
  return svg("g", { class: `hull${isLoop(group)}`, "data-node": `n${group}`, role: "button", "aria-label": `n${group}: ${grouped(group)}` },
    svg("rect", { x: l, y: t, width: r - l, height: b - t, rx: 10 }), svg("rect", { class: "told", x: l - 4, y: t - 4, width: r - l + 8, height: b - t + 8, rx: 13 }));
}
/** What a group is: fused ops, a loop with how often it runs, a choice. */
const isLoop = (group) => (elements[group].op === "fused" ? "" : " is-loop");
const SHORT = { while_loop: "while", branch: "cond", sized: "steps" };
const grouped = (group) => [SHORT[elements[group].op] ?? elements[group].op, elements[group].times].filter(Boolean).join(" ");
function titleOfGroup(boxes, stage) {
  const { group } = world.boxes[boxes[0]];
  return `${grouped(group)} n${group}${stage.freshGroups.has(group) ? " new" : ""}`;
}
function tag({ boxes, rect, at }) {
  const { group } = world.boxes[boxes[0]];
  return svg("text", { class: `tag${isLoop(group)}`, x: at, y: rect[1] + 13 }, `${grouped(group)} n${group}`, svg("tspan", { class: "badge" }, " new"));
}
