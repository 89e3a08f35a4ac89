// The messages: slanted lines from the edge of one lane to the edge of another.

/** Fates that are rare and matter: drawn over what is usual. */
const ODD = new Set(["delayed", "lost"]);
const DASHES = { normal: [], delayed: [6, 3], duplicate: [1.5, 3], lost: [] };

/** Ends of an arrow on the page: from the edge of one lane that faces the other lane to the edge there. */
function wayOf(arrow, layout, x) {
  const [a, b] = [layout.lanes[arrow.from], layout.lanes[arrow.to]];
  if (!a || !b) return null;
  const x0 = x(arrow.sent_ns);
  let [y0, y1] = a.top < b.top ? [a.bottom, b.top] : [a.top, b.bottom];
  if (a === b) [y0, y1] = [a.bottom, a.bottom + 9];
  if (arrow.arrived_ns !== null) return { x0, y0, x1: x(arrow.arrived_ns), y1 };
  return { x0, y0, x1: x(arrow.sent_ns + story.usual / 2), y1: (y0 + y1) / 2 };
}

const arrowShown = (arrow, look) => look.kinds.has(arrow.kind) && look.fates.has(arrow.fate)
  && (look.resource === null || arrow.resource === undefined || arrow.resource === null || arrow.resource === look.resource);

/** The messages in view, those that look alike together: thousands of lines are then a few strokes. */
function gatherArrows(pen) {
  const { layout, view, x, look } = pen;
  const buckets = new Map();
  for (const arrow of story.arrows) {
    const until = arrow.arrived_ns ?? arrow.sent_ns + story.usual;
    if (until < view.from || arrow.sent_ns > view.to || !arrowShown(arrow, look)) continue;
    const way = wayOf(arrow, layout, x);
    if (!way) continue;
    const clear = look.lane === null || arrow.from === look.lane || arrow.to === look.lane;
    const fate = arrow.arrived_ns === null ? "lost" : arrow.fate;
    const key = `${clear ? 1 : 0}|${arrow.kind}|${fate}`;
    if (!buckets.has(key)) buckets.set(key, { clear, kind: arrow.kind, fate, ways: [] });
    buckets.get(key).ways.push(way);
    if (clear) pen.lines.push({ ...way, type: "arrow", of: arrow });
  }
  return [...buckets.values()].sort((a, b) => a.clear - b.clear);
}

function drawArrows({ ctx, lines }, buckets) {
  const count = lines.length;
  const strength = Math.min(0.95, Math.max(0.2, 9 / Math.sqrt(count + 1)));
  ctx.lineCap = "butt";
  for (const { clear, kind, fate, ways } of buckets) {
    ctx.strokeStyle = ctx.fillStyle = palette[`m-${kind}`];
    ctx.globalAlpha = clear ? Math.max(strength, ODD.has(fate) ? 0.4 : 0) : 0.07;
    ctx.lineWidth = count < 500 ? 1.15 : 0.9;
    ctx.setLineDash(DASHES[fate]);
    ctx.beginPath();
    for (const { x0, y0, x1, y1 } of ways) {
      ctx.moveTo(x0, y0);
      ctx.lineTo(x1, y1);
    }
    ctx.stroke();
    ctx.setLineDash([]);
    if (!clear || (count > 700 && fate !== "lost")) continue;
    ctx.globalAlpha = Math.max(strength, 0.5);
    ctx.beginPath();
    for (const way of ways) if (fate === "lost") addCross(ctx, way); else addHead(ctx, way);
    ctx.lineWidth = 1.3;
    if (fate === "lost") ctx.stroke(); else ctx.fill();
  }
  ctx.globalAlpha = 1;
}

function addCross(ctx, { x1, y1 }) {
  ctx.moveTo(x1 - 3, y1 - 3);
  ctx.lineTo(x1 + 3, y1 + 3);
  ctx.moveTo(x1 - 3, y1 + 3);
  ctx.lineTo(x1 + 3, y1 - 3);
}

function addHead(ctx, { x0, y0, x1, y1 }) {
  const angle = Math.atan2(y1 - y0, x1 - x0);
  ctx.moveTo(x1, y1);
  ctx.lineTo(x1 - 6 * Math.cos(angle - 0.36), y1 - 6 * Math.sin(angle - 0.36));
  ctx.lineTo(x1 - 6 * Math.cos(angle + 0.36), y1 - 6 * Math.sin(angle + 0.36));
}

/** Words beside arrows, as long as they are few enough to be read: between the lanes, unless they say what went wrong. */
function drawArrowLabels({ ctx, width, layout, lines, hits, taken }) {
  if (lines.length > 240) return;
  const odd = lines.filter((line) => line.of.fate !== "normal");
  // Where there are many, only what is out of the ordinary gets words.
  const worded = lines.length > 64 ? odd : [...odd, ...lines.filter((line) => line.of.fate === "normal")];
  for (const { of, box } of hits) if (!WIDE.has(of.kind)) taken.push(box);
  ctx.font = `10.5px ${palette.font}`;
  ctx.lineJoin = "round";
  for (const line of worded) {
    const text = line.of.label || ARROW_WORDS[line.of.kind];
    const w = textWidth(ctx, text);
    const usual = line.of.fate === "normal";
    for (const part of usual ? [0.16, 0.84, 0.3, 0.7, 0.5] : [0.16, 0.84, 0.98, 0.3, 0.7, 0.5]) {
      const px = line.x0 + (line.x1 - line.x0) * part + 5;
      const py = line.y0 + (line.y1 - line.y0) * part;
      const inside = layout.lanes.some((lane) => py + 7 > lane.top && py - 7 < lane.bottom);
      if ((usual && inside) || px < 0 || px + w > width || !take(taken, px - 2, py - 7, px + w + 2, py + 7)) continue;
      ctx.strokeStyle = inside ? palette.lane : palette.bg;
      ctx.lineWidth = 3.5;
      ctx.textAlign = "left";
      ctx.strokeText(text, px, py);
      ctx.fillStyle = palette[`m-${line.of.kind}`];
      ctx.fillText(text, px, py);
      break;
    }
  }
}
