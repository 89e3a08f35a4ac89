// The parts of store urls that several kinds of stores have.

/** URL parsers silently drop some of these, and read the last one as a slash. */
export const UNFIT = /[\u0000-\u001f\u007f\\]/;

/** @returns {Record<string, any>} */
export function named(search, known, wrong) {
  const given = {};
  for (const [name, value] of new URLSearchParams(search)) {
    // Without its name, which may be the rest of a token with a question mark.
    if (!known.includes(name)) throw wrong(`it has an unknown parameter; there are ${known.join(", ")}`);
    if (name in given) throw wrong(`${name} is given twice`);
    if (value === "") throw wrong(`${name} is empty; give it a value, or leave it out`);
    given[name] = value;
  }
  return given;
}

/** @param {Record<string, any>} parameters */
export function allowed({ plaintext }, protocol, wrong) {
  if (plaintext === undefined) return undefined;
  if (plaintext !== "allow") throw wrong("write plaintext=allow, or leave plaintext out");
  if (protocol === "https:") throw wrong("plaintext=allow is for http only; leave it out");
  return "allowed";
}

export function durable(parameters, usual, wrong) {
  switch (parameters.durable) {
    case undefined:
      return usual;
    case "yes":
      return "declared";
    case "no":
      return "not-declared";
    default:
      throw wrong("write durable=yes for a store that loses nothing in a restart, or leave it out");
  }
}

export function isLoopback(url, wrong) {
  try {
    const { hostname } = new URL(url);
    return /^(localhost|.*\.localhost|127\.[0-9.]+|\[::1\]|\[::ffff:7f[0-9a-f]{2}:[0-9a-f]+\])$/.test(hostname);
  } catch {
    throw wrong("endpoint is not a url; write it like https://dynamodb.eu-west-1.amazonaws.com");
  }
}

/** True if an apparent path or parameters may be the rest of a token or password with unescaped characters. */
export function isDoubtful(url) {
  return /[/?#\\].*@/s.test(url.replace(/^[^:]*:\/\//, ""));
}

/** A url without secrets: its scheme, and its host if its start and end are certain. */
export function shown(url) {
  const [, scheme, authority] = /^([a-z][a-z0-9+.-]*):\/\/([^/?#\\]*)/i.exec(url) ?? [];
  if (scheme === undefined) return '"..."';
  const [, host] = /^(?:.*@)?((?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?)$/is.exec(authority) ?? [];
  return JSON.stringify(`${scheme}://${isDoubtful(url) || host === undefined ? "..." : host}`);
}
