// The picture: everything in view is drawn anew for each frame, and what was drawn can be pointed at.

const TAU = Math.PI * 2;
let hatches = new Map();
let widths = new Map();

function prepare(canvas, width, height) {
  const limit = 16000;
  const dpr = Math.min(window.devicePixelRatio || 1, limit / Math.max(width, height, 1));
  const [w, h] = [Math.max(1, Math.round(width * dpr)), Math.max(1, Math.round(height * dpr))];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const ctx = canvas.getContext("2d");
  ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
  ctx.clearRect(0, 0, width, height);
  return ctx;
}

/** Diagonal lines in `colour`, `gap` pixels apart, that move along with what they cover. */
function hatch(ctx, colour, gap, weight, shift) {
  const key = `${colour}/${gap}/${weight}`;
  if (!hatches.has(key)) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = gap * 2;
    const pen = tile.getContext("2d");
    pen.strokeStyle = colour;
    pen.lineWidth = weight * 2;
    for (const at of [-gap * 2, 0, gap * 2]) {
      pen.beginPath();
      pen.moveTo(at - 2, gap * 2 + 2);
      pen.lineTo(at + gap * 2 + 2, -2);
      pen.stroke();
    }
    hatches.set(key, ctx.createPattern(tile, "repeat"));
  }
  const pattern = hatches.get(key);
  pattern.setTransform(new DOMMatrix([0.5, 0, 0, 0.5, shift % gap, 0]));
  return pattern;
}

function textWidth(ctx, text) {
  const key = `${ctx.font}|${text}`;
  if (!widths.has(key)) {
    if (widths.size > 5000) widths = new Map();
    widths.set(key, ctx.measureText(text).width);
  }
  return widths.get(key);
}

/** Distance between two ticks, at least `pixels` apart: 1, 2 or 5 times a power of ten nanoseconds. */
function tickStep(scale, pixels) {
  const least = Math.max(1, pixels / scale);
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((n) => n * power >= least) ?? 10);
}

function tickLabel(time, step) {
  if (story.end < 2e9 && step >= 1e6) return `${Math.round(time / 1e6)}\u00a0ms`;
  const digits = Math.max(0, 9 - Math.floor(Math.log10(step) + 1e-9));
  const [whole, rest] = (time / 1e9).toFixed(Math.min(9, digits)).split(".");
  return `${whole}${rest ? `.${group3(rest)}` : ""}\u00a0s`;
}

function eachTick(view, scale, pixels, act) {
  const step = tickStep(scale, pixels);
  for (let i = Math.ceil(view.from / step); i * step <= view.to; i += 1) if (i >= 0) act(i * step, step);
}

/** The sharp overview of the whole run: how much happened when, faults, violations, and the part in view. */
function drawOverview(canvas, width, view) {
  const height = 26;
  const ctx = prepare(canvas, width, height);
  const { from, to } = bounds();
  const x = (time) => ((time - from) / (to - from)) * width;
  const bins = new Array(Math.max(1, Math.floor(width / 3))).fill(0);
  for (const arrow of story.arrows) bins[Math.min(bins.length - 1, Math.max(0, Math.floor(x(arrow.sent_ns) / 3)))] += 1;
  const most = Math.max(...bins, 1);
  ctx.fillStyle = palette.muted;
  ctx.globalAlpha = 0.5;
  bins.forEach((n, i) => { if (n > 0) ctx.fillRect(i * 3, height - 5 - Math.max(1, (n / most) * 15), 2, Math.max(1, (n / most) * 15)); });
  ctx.globalAlpha = 1;
  ctx.fillStyle = palette.line;
  ctx.fillRect(0, height - 5, width, 1);
  for (const overlap of story.overlaps) {
    ctx.fillStyle = palette.danger;
    ctx.fillRect(x(overlap.from), height - 6, Math.max(2, x(overlap.to) - x(overlap.from)), 3);
  }
  for (const mark of story.violations) {
    ctx.fillStyle = palette.danger;
    ctx.fillRect(x(mark.at_ns) - 0.75, 1, 1.5, height - 4);
  }
  const [a, b] = [Math.max(0, x(view.from)), Math.min(width, x(view.to))];
  if (b - a > width - 2) return;
  ctx.globalAlpha = 0.72;
  ctx.fillStyle = palette.bg;
  ctx.fillRect(0, 0, a, height);
  ctx.fillRect(b, 0, width - b, height);
  ctx.globalAlpha = 1;
  ctx.strokeStyle = palette.focus;
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  ctx.roundRect(Math.min(a + 0.75, width - 5), 0.75, Math.max(4, b - a - 1.5), height - 4, 3);
  ctx.stroke();
}

function drawAxis(canvas, width, view) {
  const ctx = prepare(canvas, width, 30);
  const scale = width / (view.to - view.from);
  ctx.font = `11px ${palette.font}`;
  ctx.textBaseline = "middle";
  ctx.fillStyle = palette.muted;
  const flags = story.violations.map((mark) => (mark.at_ns - view.from) * scale).filter((x) => x > -2 && x < width + 2);
  eachTick(view, scale, 96, (time, step) => {
    const x = (time - view.from) * scale;
    const label = tickLabel(time, step);
    const half = textWidth(ctx, label) / 2;
    ctx.fillRect(Math.round(x), 25, 1, 5);
    if (flags.some((flag) => flag < x + half + 6 && flag + 62 > x - half)) return;
    ctx.textAlign = x < half ? "left" : x > width - half ? "right" : "center";
    ctx.fillText(label, ctx.textAlign === "left" ? Math.max(0, x) : Math.min(width, x), 15);
  });
  ctx.textAlign = "center";
  let last = -1e9;
  for (const [i, mark] of story.violations.entries()) {
    const x = (mark.at_ns - view.from) * scale;
    if (x < -2 || x > width + 2 || x - last < 22) continue;
    last = x;
    const text = story.violations.length > 1 ? `broken ${i + 1}` : "broken";
    ctx.font = `600 10.5px ${palette.font}`;
    const w = textWidth(ctx, text) + 12;
    const left = x + w > width ? x - w : x;
    ctx.fillStyle = palette.danger;
    ctx.beginPath();
    ctx.roundRect(left, 7, w, 16, 2.5);
    ctx.fill();
    ctx.fillRect(x - 0.75, 7, 1.5, 23);
    ctx.fillStyle = inkOn(palette.danger);
    ctx.fillText(text, left + w / 2, 15.5);
  }
}

/** One frame of the lanes. Returns what was drawn, as boxes and lines to point at. */
function drawStage(canvas, width, layout, view, look) {
  const ctx = prepare(canvas, width, layout.height);
  const scale = width / (view.to - view.from);
  const x = (time) => (time - view.from) * scale;
  const pen = { ctx, width, layout, view, look, scale, x, shift: -view.from * scale, hits: [], lines: [], taken: [] };
  ctx.textBaseline = "middle";
  drawGround(pen);
  const buckets = gatherArrows(pen);
  drawArrows(pen, buckets.filter(({ fate }) => !ODD.has(fate)));
  veilLanes(pen);
  drawArrows(pen, buckets.filter(({ fate }) => ODD.has(fate)));
  drawOverlapBands(pen);
  drawWide(pen);
  drawSpans(pen);
  shadeBars(pen);
  drawOverlaps(pen);
  drawMarks(pen);
  drawViolations(pen);
  drawArrowLabels(pen);
  return pen;
}

function drawGround({ ctx, width, layout, view, scale, x, look }) {
  for (const lane of layout.lanes) {
    ctx.fillStyle = palette.lane;
    ctx.globalAlpha = look.lane === null || look.lane === lane.index ? 1 : 0.5;
    ctx.beginPath();
    ctx.roundRect(0, lane.top, width, lane.bottom - lane.top, 4);
    ctx.fill();
    ctx.globalAlpha = 1;
  }
  ctx.fillStyle = palette.grid;
  eachTick(view, scale, 96, (time) => ctx.fillRect(Math.round(x(time)), 0, 1, layout.height));
  ctx.fillStyle = palette.bg;
  ctx.globalAlpha = 0.8;
  if (x(0) > 0) ctx.fillRect(0, 0, x(0), layout.height);
  if (x(story.end) < width) ctx.fillRect(x(story.end), 0, width - x(story.end), layout.height);
  ctx.globalAlpha = 1;
}

function drawOverlapBands({ ctx, view, x }) {
  ctx.fillStyle = palette.danger;
  ctx.globalAlpha = 0.13;
  for (const { from, to, first, second } of story.overlaps) {
    if (to < view.from || from > view.to || !first.seen || !second.seen) continue;
    const top = Math.min(first.y, second.y);
    ctx.fillRect(x(from), top, Math.max(1, x(to) - x(from)), Math.max(first.y + first.h, second.y + second.h) - top);
  }
  ctx.globalAlpha = 1;
}

/** Lanes that a message only passes lie above it, like a pane of frosted glass: lines are clear where they begin and end. */
function veilLanes({ ctx, width, layout }) {
  ctx.fillStyle = palette.lane;
  ctx.globalAlpha = 0.76;
  for (const lane of layout.lanes) ctx.fillRect(0, lane.top, width, lane.bottom - lane.top);
  ctx.globalAlpha = 1;
  ctx.fillStyle = palette["grid-in"];
  for (const lane of layout.lanes) for (const group of lane.groups.slice(1)) ctx.fillRect(0, Math.round(group.top), width, 1);
}

/** True when the box is free; it is taken from then on. */
function take(taken, left, top, right, bottom) {
  if (taken.some((box) => left < box[2] && right > box[0] && top < box[3] && bottom > box[1])) return false;
  taken.push([left, top, right, bottom]);
  return true;
}

const fadedSpan = (span, look) => look.lane !== null && span.lane !== look.lane && ownerOf(span) !== look.lane;

function drawSpans(pen) {
  const { ctx, width, layout, view, x, look, hits, shift } = pen;
  for (const lane of layout.lanes) {
    for (const group of lane.groups) {
      for (const span of group.spans) {
        if (span.to < view.from || span.from > view.to) continue;
        const [left, right] = [Math.max(-8, x(span.from)), Math.min(width + 8, x(span.to))];
        const w = Math.max(1.5, right - left);
        const colour = holderColour(span);
        hits.push({ type: "span", of: span, box: [left - 1, span.y - 2, left + w + 1, span.y + span.h + 2] });
        ctx.globalAlpha = fadedSpan(span, look) ? 0.22 : 1;
        ctx.beginPath();
        ctx.roundRect(left, span.y, w, span.h, Math.min(3, w / 2));
        if (span.kind === "waiting") {
          ctx.fillStyle = palette.lane;
          ctx.fill();
          ctx.fillStyle = hatch(ctx, colour, 5, 1.4, shift);
          ctx.fill();
        } else {
          ctx.fillStyle = colour;
          ctx.fill();
          drawBarText(pen, span, left, w, colour);
        }
      }
    }
    for (const span of lane.strip) drawFaultSpan(pen, span);
  }
  ctx.globalAlpha = 1;
}

/** The token and what else fits into a bar. Returns where the words end, for text that must keep clear of them. */
function drawBarText({ ctx, width, layout }, span, left, w, colour) {
  const size = layout.pitch >= 22 ? 11 : 10.5;
  ctx.font = `600 ${size}px ${palette.font}`;
  const from = Math.max(left, 0);
  const visible = Math.min(left + w, width) - from;
  const y = span.y + span.h / 2 + 0.5;
  ctx.textAlign = "left";
  ctx.fillStyle = inkOn(colour);
  let used = 6;
  if (span.token !== null) {
    const token = shortToken(span.token);
    const tw = textWidth(ctx, token);
    if (visible < tw + 4) return from;
    if (visible < tw + 12) {
      ctx.textAlign = "center";
      ctx.fillText(token, from + visible / 2, y);
      return from + visible;
    }
    ctx.fillText(token, from + used, y);
    used += tw + 7;
  }
  ctx.font = `${size}px ${palette.font}`;
  const owner = span.kind === "record" ? ownerName(span) : "";
  for (const text of [[owner, span.label].filter(Boolean).join(", "), owner]) {
    if (!text || textWidth(ctx, text) + used + 6 > visible) continue;
    ctx.fillText(text, from + used, y);
    return from + used + textWidth(ctx, text);
  }
  return from + used - 7;
}

function drawFaultSpan({ ctx, width, view, x, hits, look, taken }, span) {
  if (span.to < view.from || span.from > view.to) return;
  const [left, right] = [Math.max(-8, x(span.from)), Math.min(width + 8, x(span.to))];
  const middle = span.y + 6;
  hits.push({ type: "span", of: span, box: [left - 2, span.y, Math.max(right, left + 3) + 2, span.y + 13] });
  ctx.globalAlpha = fadedSpan(span, look) ? 0.3 : 1;
  ctx.fillStyle = ctx.strokeStyle = palette.fault;
  ctx.font = `10.5px ${palette.font}`;
  const text = span.label || SPAN_WORDS.fault;
  const from = Math.max(left, 0);
  const w = textWidth(ctx, text);
  const fits = Math.min(right, width) - from > w + 16;
  if (fits) {
    ctx.textAlign = "left";
    ctx.fillText(text, from + 7, middle + 0.5);
  }
  ctx.globalAlpha *= 0.75;
  ctx.fillRect(left, middle - 4, 1.5, 8);
  ctx.fillRect(Math.max(right, left + 1.5) - 1.5, middle - 4, 1.5, 8);
  const begin = fits ? from + w + 12 : left;
  if (right - begin > 1) ctx.fillRect(begin, middle - 0.5, right - begin, 1);
  const beside = Math.max(right, left + 1.5) + 6;
  if (fits || beside + w > width || !take(taken, left, middle - 6, beside + w, middle + 6)) return;
  ctx.textAlign = "left";
  ctx.fillText(text, beside, middle + 0.5);
}

function drawWide({ ctx, width, layout, view, x, hits, shift, taken }) {
  for (const lane of layout.lanes) {
    for (const span of lane.wide) {
      if (span.to < view.from || span.from > view.to) continue;
      const [left, right] = [Math.max(-8, x(span.from)), Math.min(width + 8, x(span.to))];
      const w = Math.max(2, right - left);
      hits.unshift({ type: "span", of: span, box: [left, span.y, left + w, span.y + span.h] });
      const dead = span.kind === "dead";
      ctx.fillStyle = dead ? palette.shade : palette.bg;
      ctx.globalAlpha = dead ? 0.3 : 0.45;
      ctx.fillRect(left, span.y, w, span.h);
      ctx.globalAlpha = dead ? 0.5 : 0.55;
      ctx.fillStyle = hatch(ctx, palette.shade, dead ? 5 : 8, 1, shift);
      ctx.fillRect(left, span.y, w, span.h);
      ctx.globalAlpha = 0.8;
      ctx.fillStyle = palette.shade;
      ctx.fillRect(left, span.y, 1, span.h);
      ctx.fillRect(left + w - 1, span.y, 1, span.h);
      ctx.globalAlpha = 1;
      ctx.font = `10.5px ${palette.font}`;
      const space = Math.min(right, width) - Math.max(left, 0) - 20;
      const text = [span.label, dead ? "no process" : "paused"].find((words) => words && textWidth(ctx, words) < space);
      if (!text) continue;
      const at = Math.max(left, 0) + 8;
      const tw = textWidth(ctx, text) + 8;
      const y = span.y + 4;
      if (!take(taken, at, y, at + tw, y + 14)) continue;
      ctx.fillStyle = palette.lane;
      ctx.beginPath();
      ctx.roundRect(at, y, tw, 14, 3);
      ctx.fill();
      ctx.fillStyle = palette.soft;
      ctx.textAlign = "left";
      ctx.fillText(text, at + 4, y + 7.5);
    }
  }
}

/** Bars go on while their process does not run, but paler, under the same hatching. */
function shadeBars({ ctx, width, layout, view, x, shift }) {
  for (const lane of layout.lanes) {
    for (const wide of lane.wide) {
      if (wide.to < view.from || wide.from > view.to) continue;
      ctx.save();
      ctx.beginPath();
      const left = Math.max(-8, x(wide.from));
      ctx.rect(left, lane.top, Math.min(width + 8, x(wide.to)) - left, lane.bottom - lane.top);
      ctx.clip();
      for (const span of lane.groups.flatMap((group) => group.spans)) {
        if (span.kind === "waiting" || span.to < wide.from || span.from > wide.to) continue;
        ctx.globalAlpha = 0.25;
        ctx.fillStyle = palette.bg;
        ctx.fillRect(x(span.from), span.y, x(span.to) - x(span.from), span.h);
        ctx.globalAlpha = 0.5;
        ctx.fillStyle = hatch(ctx, palette.bg, 8, 1.4, shift);
        ctx.fillRect(x(span.from), span.y, x(span.to) - x(span.from), span.h);
      }
      ctx.restore();
    }
  }
}

function drawOverlaps(pen) {
  const { ctx, view, x, hits, shift } = pen;
  for (const overlap of story.overlaps) {
    const { from, to, first, second } = overlap;
    if (to < view.from || from > view.to) continue;
    for (const span of [first, second]) {
      if (!span.seen) continue;
      const [left, w] = [x(from), Math.max(2, x(to) - x(from))];
      // Stripes on a pale ground differ by brightness too, for eyes that do not tell red from green.
      ctx.globalAlpha = 0.6;
      ctx.fillStyle = "#ffffff";
      ctx.fillRect(left, span.y, w, span.h);
      ctx.globalAlpha = 1;
      ctx.fillStyle = hatch(ctx, palette.alarm, 6, 2.4, shift);
      ctx.fillRect(left, span.y, w, span.h);
      ctx.strokeStyle = palette.alarm;
      ctx.lineWidth = 2;
      ctx.strokeRect(left, span.y - 1, w, span.h + 2);
      drawOverlapText(pen, span);
      hits.push({ type: "overlap", of: overlap, box: [left - 1, span.y - 2, left + w + 1, span.y + span.h + 2] });
    }
  }
}

/** Keeps the token readable where the hatching would run through it. */
function drawOverlapText(pen, span) {
  const { ctx, x, width } = pen;
  const left = Math.max(-8, x(span.from));
  const w = Math.min(width + 8, x(span.to)) - left;
  const colour = holderColour(span);
  ctx.globalAlpha = 0;
  const end = drawBarText(pen, span, left, w, colour);
  ctx.globalAlpha = 1;
  const from = Math.max(left, 0) + 2;
  if (end - from < 4) return;
  ctx.fillStyle = colour;
  ctx.fillRect(from, span.y + 1, Math.min(end + 5 - from, w - 4), span.h - 2);
  drawBarText(pen, span, left, w, colour);
}

function drawMark({ ctx, x, hits }, mark) {
  const [at, y] = [x(mark.at_ns), mark.y];
  hits.push({ type: "mark", of: mark, box: [at - 6, y - 6, at + 6, y + 6] });
  ctx.lineCap = "round";
  ctx.lineWidth = 1.8;
  ctx.beginPath();
  if (mark.kind === "accepted") {
    ctx.strokeStyle = palette.calm;
    ctx.moveTo(at - 4, y); ctx.lineTo(at - 1, y + 3.2); ctx.lineTo(at + 4.5, y - 3.8);
    ctx.stroke();
  } else if (mark.kind === "refused") {
    ctx.fillStyle = palette.lane;
    ctx.arc(at, y, 7, 0, TAU);
    ctx.fill();
    ctx.beginPath();
    ctx.lineWidth = 2.4;
    ctx.strokeStyle = palette.fault;
    ctx.moveTo(at - 4, y - 4); ctx.lineTo(at + 4, y + 4);
    ctx.moveTo(at - 4, y + 4); ctx.lineTo(at + 4, y - 4);
    ctx.stroke();
  } else if (mark.kind === "fault") {
    ctx.fillStyle = palette.fault;
    ctx.moveTo(at, y - 4.5); ctx.lineTo(at + 4.5, y); ctx.lineTo(at, y + 4.5); ctx.lineTo(at - 4.5, y);
    ctx.fill();
  } else {
    ctx.fillStyle = palette.muted;
    ctx.strokeStyle = palette.lane;
    ctx.lineWidth = 1.5;
    ctx.arc(at, y, 2.2, 0, TAU);
    ctx.stroke();
    ctx.fill();
  }
  ctx.lineCap = "butt";
}

/** A few words beside a mark, on whichever side there is room. */
function drawMarkLabel({ ctx, x, taken, width }, mark) {
  ctx.font = `10.5px ${palette.font}`;
  const w = textWidth(ctx, mark.label);
  const at = x(mark.at_ns);
  for (const left of [at + 9, at - 9 - w]) {
    if (left < 0 || left + w > width || !take(taken, left - 1, mark.y - 6, left + w + 1, mark.y + 6)) continue;
    ctx.textAlign = "left";
    ctx.lineWidth = 4;
    ctx.strokeStyle = mark.lane === null ? palette.bg : palette.lane;
    ctx.strokeText(mark.label, left, mark.y + 0.5);
    ctx.fillStyle = mark.kind === "accepted" ? palette.muted : palette.fault;
    ctx.fillText(mark.label, left, mark.y + 0.5);
    return;
  }
}

function drawMarks(pen) {
  const { layout, view, x, taken } = pen;
  for (const { at_ns } of story.violations) taken.push([x(at_ns) - 2, 0, x(at_ns) + 2, layout.height]);
  const inView = (mark) => mark.at_ns >= view.from && mark.at_ns <= view.to;
  const marksOf = (lane) => [...lane.stripMarks, ...lane.groups.flatMap((group) => group.marks)];
  const marks = [...layout.world, ...layout.lanes.flatMap(marksOf)].filter(inView);
  // What went wrong stands above what went well, and has the first choice of a place for its words.
  const order = { event: 0, accepted: 1, fault: 2, refused: 3, violation: 4 };
  marks.sort((a, b) => order[a.kind] - order[b.kind]);
  const dense = marks.length > 150;
  for (const mark of marks) {
    // From afar a bar says by itself when it begins and ends.
    if (dense && mark.beside) continue;
    drawMark(pen, mark);
    if (mark.kind !== "event") taken.push([x(mark.at_ns) - 5, mark.y - 5, x(mark.at_ns) + 5, mark.y + 5]);
  }
  const calm = marks.filter((mark) => mark.kind === "accepted").length <= 12;
  const worded = marks.filter((mark) => mark.label && mark.kind !== "event" && (calm || mark.kind !== "accepted"));
  for (const mark of worded.reverse().slice(0, 80)) drawMarkLabel(pen, mark);
}

function drawViolations({ ctx, view, x, layout, hits }) {
  ctx.fillStyle = palette.danger;
  for (const mark of story.violations) {
    if (mark.at_ns < view.from || mark.at_ns > view.to) continue;
    const at = x(mark.at_ns);
    ctx.fillRect(at - 0.75, 0, 1.5, layout.height);
    hits.unshift({ type: "mark", of: mark, box: [at - 4, 0, at + 4, layout.height] });
    const lane = layout.lanes[mark.lane];
    if (!lane) continue;
    ctx.beginPath();
    ctx.arc(at, (lane.top + lane.bottom) / 2, 4, 0, TAU);
    ctx.fill();
  }
}
