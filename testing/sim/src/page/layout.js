// Where everything stands: rows of lanes from top to bottom, overlaps, and the colours of the theme.

const byTime = (key) => (a, b) => a[key] - b[key];

/** Every stretch during which two beliefs in one resource stand at once. */
function findOverlaps(spans) {
  const found = [];
  const active = new Map();
  for (const span of spans.filter((s) => s.kind === "belief").sort(byTime("from"))) {
    const still = (active.get(span.resource) ?? []).filter((other) => other.to > span.from);
    for (const other of still) {
      const to = Math.min(other.to, span.to);
      if (to > span.from) found.push({ resource: span.resource, from: span.from, to, first: other, second: span });
    }
    still.push(span);
    active.set(span.resource, still);
  }
  return found;
}

/** Puts each span into the first row that is free, so that what overlaps in time stands one below the other. */
function stack(spans) {
  const ends = [];
  for (const span of [...spans].sort((a, b) => a.from - b.from || a.to - b.to)) {
    let row = ends.findIndex((end) => end <= span.from);
    if (row < 0) row = ends.push(0) - 1;
    ends[row] = span.to;
    span.row = row;
  }
  return ends.length;
}

const WIDE = new Set(["paused", "dead"]);

/** The lanes with their rows for the chosen resource (`null`: all of them), before any pixel is known. */
function gatherLanes(chosen) {
  const shown = (thing) => chosen === null || thing.resource === null || thing.resource === undefined || thing.resource === chosen;
  const lanes = story.lanes.map((lane, index) => ({ ...lane, index, groups: new Map(), strip: [], wide: [], stripMarks: [] }));
  const groupOf = (lane, resource) => {
    if (!lane.groups.has(resource)) lane.groups.set(resource, { resource, spans: [], marks: [], rows: 1 });
    return lane.groups.get(resource);
  };
  for (const span of story.spans) {
    const lane = lanes[span.lane];
    span.seen = Boolean(lane) && shown(span);
    if (!span.seen) continue;
    if (WIDE.has(span.kind)) lane.wide.push(span);
    else if (span.kind === "fault") lane.strip.push(span);
    else groupOf(lane, span.resource).spans.push(span);
  }
  const world = [];
  for (const mark of story.marks) {
    mark.seen = shown(mark);
    if (!mark.seen || mark.kind === "violation") continue;
    const lane = lanes[mark.lane];
    if (!lane) world.push(mark);
    else if (mark.kind === "fault" || mark.resource === null) lane.stripMarks.push(mark);
    else groupOf(lane, mark.resource).marks.push(mark);
  }
  for (const lane of lanes) {
    lane.groups = [...lane.groups.values()].sort((a, b) => (a.resource ?? -1) - (b.resource ?? -1));
    for (const group of lane.groups) group.rows = Math.max(1, stack(group.spans));
    lane.strips = Math.max(stack(lane.strip), lane.stripMarks.length + lane.wide.length > 0 ? 1 : 0);
  }
  return { lanes, world };
}

/** An event sits under the bar that it begins or ends, otherwise under the whole row. */
function eventPlace(mark, group) {
  const span = group.spans.find((one) => one.from_ns === mark.at_ns || one.to_ns === mark.at_ns);
  mark.beside = span !== undefined;
  return span ? span.y + span.h + 1.5 : group.bottom - 1.5;
}

/** Gives every lane, row, span and mark its place; what room is left goes where the messages are. */
function arrange(chosen, room) {
  const { lanes, world } = gatherLanes(chosen);
  const rows = lanes.reduce((sum, lane) => sum + Math.max(1, lane.groups.reduce((n, g) => n + g.rows, 0)), 0);
  const strips = lanes.reduce((sum, lane) => sum + lane.strips, 0);
  const steps = lanes.length - 1;
  const changes = lanes.filter((lane, i) => i > 0 && lane.kind !== lanes[i - 1].kind).length;
  const fixed = (pitch) => rows * pitch + strips * 15 + lanes.length * 10 + steps * 12 + changes * 34 + 30;
  const pitch = [26, 22].find((p) => fixed(p) <= room) ?? 18;
  const spare = Math.max(0, room - fixed(pitch));
  // A run with one or two lanes should not be torn apart by a tall window.
  const between = Math.min(30, steps > 0 ? (spare * 0.35) / steps : 0);
  const change = Math.min(150, changes > 0 ? (spare - between * steps) / changes : 0);
  const thick = pitch - (pitch > 18 ? 6 : 4);
  let y = world.length > 0 ? 24 : 10;
  for (const [i, lane] of lanes.entries()) {
    if (i > 0) y += 12 + between + (lane.kind !== lanes[i - 1].kind ? 34 + change : 0);
    lane.top = y;
    y += 5;
    for (const span of lane.strip) Object.assign(span, { y: y + span.row * 15, h: 13 });
    for (const mark of lane.stripMarks) mark.y = y + 6.5;
    y += lane.strips * 15;
    if (lane.groups.length === 0) y += pitch;
    for (const group of lane.groups) {
      group.top = y;
      group.bottom = y + group.rows * pitch;
      for (const span of group.spans) {
        const h = span.kind === "waiting" ? Math.max(6, Math.round(thick * 0.4)) : thick;
        Object.assign(span, { y: Math.round(y + span.row * pitch + (pitch - h) / 2), h });
      }
      for (const mark of group.marks) mark.y = mark.kind === "event" ? eventPlace(mark, group) : (group.top + group.bottom) / 2;
      y = group.bottom;
    }
    y += 5;
    lane.bottom = y;
    for (const span of lane.wide) Object.assign(span, { y: lane.top, h: lane.bottom - lane.top });
  }
  for (const mark of world) mark.y = 12;
  return { lanes, world, pitch, height: Math.ceil(y + 14) };
}

const palette = {};
const NAMES = [
  "bg", "lane", "soft", "muted", "line", "grid", "grid-in", "danger", "alarm", "calm", "focus", "shade", "foreign", "fault",
];

function readPalette() {
  const style = getComputedStyle(document.documentElement);
  const names = [...NAMES, ...Object.keys(ARROW_WORDS).map((kind) => `m-${kind}`), ...Array.from({ length: 8 }, (_, i) => `h${i}`)];
  for (const name of names) palette[name] = style.getPropertyValue(`--${name}`).trim();
  palette.font = getComputedStyle(document.body).fontFamily;
}

/** The number of a host among the hosts: colours do not depend on how many stores stand before it. */
const hostNumber = (lane) => story.lanes.slice(0, lane).filter((other) => other.kind === "host").length;
const laneColour = (lane) => palette[`h${hostNumber(lane) % 8}`];
const ownerOf = (span) => span.owner ?? (span.kind === "belief" || span.kind === "waiting" ? span.lane : null);

function holderColour(span) {
  const owner = ownerOf(span);
  return owner === null ? palette.foreign : laneColour(owner);
}

/** Dark or light ink, whichever reads better on `colour`. */
function inkOn(colour) {
  const [r, g, b] = [1, 3, 5].map((at) => (parseInt(colour.slice(at, at + 2), 16) / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.27 ? "#14181d" : "#ffffff";
}
