// The wires between the cards, and the messages on them.

import { GLYPHS, change, make, one, shape, sign } from "./dom.mjs";
import { FADES_NS } from "./network.mjs";
import { NAMES } from "./world.mjs";

const RADIUS = 9;
const WORD_ROOM = 80;
/** From here on there is room for more words. */
const WIDE = 600;

/** What some answers say beside their sign. */
const WORDS = { turn: "your turn", done: "done" };

export class Wires {
  #svg = one("wires");
  #cards;
  #wires = new Map();
  #dots = new Map();
  #ends = new Map();
  #lines = shape("g");
  #messages = shape("g");
  #isCrowded;
  #width = 0;

  /** `cards` is where messages start and end, by place. */
  constructor({ world }, cards) {
    this.#cards = cards;
    this.#isCrowded = world.nodes.length > 1;
    this.#svg.replaceChildren(this.#lines, this.#messages);
    for (const { place, name } of world.workers) {
      for (const other of [...world.nodes.map((node) => node.place), "resource"]) {
        const line = shape("line", { class: "wire", "data-worker": name });
        this.#lines.append(line);
        this.#wires.set(`${place} ${other}`, line);
      }
    }
    this.measure();
  }

  /** After the cards have moved. */
  measure() {
    const stage = this.#svg.parentElement.getBoundingClientRect();
    this.#width = stage.width;
    change(this.#svg, { viewBox: `0 0 ${stage.width} ${stage.height}`, width: stage.width, height: stage.height });
    for (const [place, card] of this.#cards) {
      const box = card.getBoundingClientRect();
      const [left, top] = [box.left - stage.left, box.top - stage.top];
      this.#ends.set(place, { x: left + box.width / 2, top, bottom: top + box.height });
    }
    for (const [name, line] of this.#wires) {
      const [from, to] = name.split(" ");
      const [start, end] = this.#between(from, to);
      change(line, { x1: start.x, y1: start.y, x2: end.x, y2: end.y });
    }
  }

  /** Everything as it is now. Where `isCalm` nothing moves: a wire on which something is under way is lit instead. */
  show({ world }, isCalm) {
    const lit = new Map();
    const shown = new Set();
    for (const message of world.network.shown) {
      const wire = message.isReply ? `${message.to} ${message.from}` : `${message.from} ${message.to}`;
      if (message.lostNs === undefined) lit.set(wire, message.isReply ? "reply" : "request");
      if (isCalm && message.lostNs === undefined) continue;
      shown.add(message.id);
      this.#showDot(message, world.nowNs);
    }
    for (const [id, dot] of this.#dots) {
      if (shown.has(id)) continue;
      dot.remove();
      this.#dots.delete(id);
    }
    for (const [name, line] of this.#wires) {
      const [from, to] = name.split(" ");
      const { isCut } = world.workers.find(({ place }) => place === from);
      change(line, {
        "data-lit": isCalm ? lit.get(name) : undefined,
        "data-cut": isCut && to !== "resource" ? "" : undefined,
      });
    }
  }

  #showDot(message, nowNs) {
    let dot = this.#dots.get(message.id);
    if (dot === undefined) {
      dot = this.#made(message);
      this.#dots.set(message.id, dot);
      this.#messages.append(dot);
    }
    const isLost = message.lostNs !== undefined;
    const part = isLost ? message.lostAt : (nowNs - message.sentNs) / (message.dueNs - message.sentNs);
    const [start, end] = this.#between(message.from, message.to);
    const at = (axis) => (start[axis] + (end[axis] - start[axis]) * Math.min(1, part)).toFixed(1);
    change(dot, {
      transform: `translate(${at("x")} ${at("y")})`,
      "data-lost": isLost ? "" : undefined,
      opacity: isLost ? Math.max(0, 1 - (nowNs - message.lostNs) / FADES_NS).toFixed(2) : undefined,
    });
  }

  #made({ worker, kind, isReply, tone, token, from, to }) {
    const inside = isReply ? GLYPHS[tone] : NAMES[worker.index];
    const glyph = shape("text", { class: "glyph", y: 3.7 }, inside);
    const strike = shape("path", { class: "strike", d: "M-9 9 9-9" });
    const dot = shape("g", { class: "dot", "data-worker": worker.name, "data-tone": isReply ? tone : "request" });
    dot.append(shape("circle", { r: RADIUS }), glyph, strike);
    const words = isReply ? (WORDS[tone] ?? (token !== undefined && tone === "yes" ? `${token}` : "")) : this.#wordOf(kind, token);
    // Where there is no room on the right, on the left.
    const isRight = Math.max(...this.#between(from, to).map(({ x }) => x)) + WORD_ROOM > this.#width;
    const place = isRight ? { x: -RADIUS - 4, "text-anchor": "end" } : { x: RADIUS + 4 };
    if (words !== "") dot.append(shape("text", { class: "word", y: 4, ...place }, words));
    return dot;
  }

  #wordOf(kind, token) {
    if (kind === "claim" || kind === "write" || kind === "raise") return `${kind} ${token}`;
    // To five nodes, messages of one kind leave together.
    return this.#isCrowded && (kind !== "release" || this.#width < WIDE) ? "" : kind;
  }

  #between(from, to) {
    const [one, other] = [this.#ends.get(from), this.#ends.get(to)];
    const isUp = other.top < one.top;
    return isUp
      ? [
          { x: one.x, y: one.top },
          { x: other.x, y: other.bottom },
        ]
      : [
          { x: one.x, y: one.bottom },
          { x: other.x, y: other.top },
        ];
  }
}

/** What the signs mean. */
export function legend() {
  const meaning = (tone, inside, text) => make("span", {}, sign(tone, inside), text);
  return [
    meaning("request", "A", "a request of A"),
    meaning("yes", GLYPHS.yes, "yes, with a token"),
    meaning("no", GLYPHS.no, "refused"),
    meaning("abstains", GLYPHS.abstains, "abstains"),
    meaning("lost", "", "lost on the way"),
    meaning("harm", GLYPHS.harm, "an update is lost"),
  ];
}
