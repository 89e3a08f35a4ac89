// Numbers that look random and are the same for the same seed. Each purpose has a stream of its own, so that one more
// draw for one purpose changes nothing for another.

/** A stream of fractions from 0 to below 1. */
export function stream(seed, purpose) {
  let state = mixed(`${seed}/${purpose}`);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let word = Math.imul(state ^ (state >>> 15), state | 1);
    word ^= word + Math.imul(word ^ (word >>> 7), word | 61);
    return ((word ^ (word >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function bytes(random, count) {
  return Uint8Array.from({ length: count }, () => Math.floor(random() * 256));
}

/** A word in which every letter has a say (FNV-1a). */
function mixed(text) {
  let word = 0x811c9dc5;
  for (const letter of text) word = Math.imul(word ^ letter.codePointAt(0), 0x01000193);
  return word;
}
