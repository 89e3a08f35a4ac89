// Store urls for the stores that can be reached with `fetch`. The native package reads them in the same way; it is less strict
// with repeated or empty parameters and with control characters, and has further parameters.

import { loginOf } from "./etcd.mjs";
import errors from "./shared/errors.mjs";

const { ConfigError } = errors;

const SIGNS = "in a token or password, / ? # and @ are written %2F, %3F, %23 and %40";
const WEBDIS_PORT = "7379";
const DYNAMODB = [
  "region",
  "endpoint",
  "key",
  "sort_key",
  "sort_key_value",
  "expires",
  "durable",
  "plaintext",
];
const REST = ["durable", "plaintext"];
const ETCD = ["prefix", "user", "password", "durable", "plaintext"];
const ETCD_FORM = "write etcd://host:2379, or etcds://host:2379 with TLS";
/** URL parsers silently drop some of these, and read the last one as a slash. */
const UNFIT = /[\u0000-\u001f\u007f\\]/;
const TABLE_SIGNS = "3 to 255 letters, digits, dots, dashes and underscores";
const TABLE_FORM = "write dynamodb://TABLE?region=eu-west-1";

/**
 * A store for the component, with the `name` for messages, the credentials of its url, and its declared durability.
 */
export function parsed(url) {
  const scheme = url.slice(0, Math.max(url.indexOf(":"), 0));
  switch (scheme) {
    case "dynamodb":
      return dynamodb(url);
    case "upstash+https":
    case "upstash+http":
      return rest(url, "upstash");
    case "webdis+https":
    case "webdis+http":
      return rest(url, "webdis");
    case "etcd":
    case "etcds":
      return etcd(url, scheme);
    default:
      throw new ConfigError(
        `store url ${shown(url)}: use dynamodb://, etcd://, upstash+https:// or webdis+http://; other stores ` +
          "need native code, and the package leasehold",
      );
  }
}

function rest(url, dialect) {
  const wrong = (what) => new ConfigError(`store url ${shown(url)}: ${what}`);
  const form = dialect === "upstash" ? "upstash+https://:TOKEN@host" : "webdis+http://host:7379";
  if (url.includes("#") || isDoubtful(url)) throw wrong(SIGNS);
  if (UNFIT.test(url)) throw wrong(`it has a backslash or control characters; write ${form}`);
  const given = url.slice(dialect.length + 1);
  let address;
  try {
    address = new URL(given);
  } catch {
    throw wrong(`it cannot be read; write ${form}; ${SIGNS}`);
  }
  if (!/^https?:\/\/[^/]/.test(given)) throw wrong(`the host is missing; write ${form}`);
  const parameters = named(address.search, REST, wrong);
  const [user, secret] = [address.username, address.password].map((text) => decoded(text, wrong));
  const port = literalPort(given) ?? (dialect === "webdis" && address.protocol === "http:" ? WEBDIS_PORT : "");
  const path = address.pathname.replace(/\/+$/, "");
  const base = `${address.protocol}//${address.hostname}${port && `:${port}`}${path}`;
  const credentials = dialect === "upstash" ? token(user, secret, wrong) : login(user, secret, wrong);
  const plaintext = allowed(parameters, address.protocol, wrong);
  return {
    name: `${dialect}+${base}`,
    credentials,
    durability: durable(parameters, "not-declared", wrong),
    /** `access` depends on credentials, in the url or in the option. */
    store: (access) => ({ tag: "redis-http", val: { dialect, url: base, access, plaintext } }),
    needsCredentials: dialect === "upstash",
    kinds: dialect === "upstash" ? ["token"] : ["password"],
  };
}

function dynamodb(url) {
  const wrong = (what) => new ConfigError(`store url ${shown(url)}: ${what}`);
  if (url.includes("@")) throw wrong("access keys do not belong into the url: give them as the option credentials");
  if (url.includes("#")) throw wrong("a # is written %23");
  if (UNFIT.test(url)) throw wrong(`it has a backslash or control characters; ${TABLE_FORM}`);
  const [, table, query] = /^dynamodb:\/\/([^?/]*)\/?(\?.*)?$/.exec(url) ?? [];
  if (!table) throw wrong(`the table is missing; ${TABLE_FORM}`);
  if (!/^[a-z0-9_.-]{3,255}$/i.test(table)) throw wrong(`a table's name has ${TABLE_SIGNS}; ${TABLE_FORM}`);
  const given = named(query ?? "", DYNAMODB, wrong);
  const { region, endpoint, key, expires, sort_key: sortKey, sort_key_value: sortValue } = given;
  if (region === undefined) throw wrong(`the region is missing; ${TABLE_FORM}`);
  if (!/^[a-z0-9][a-z0-9-]{1,62}[a-z0-9]$/.test(region)) throw wrong(`region is not a region; write one such as eu-west-1`);
  if (sortKey === undefined && sortValue !== undefined) throw wrong("sort_key_value without sort_key; name the attribute too");
  const base = endpoint?.replace(/\/$/, "") ?? `https://dynamodb.${region}.${domain(region, wrong)}`;
  const plaintext = allowed(given, /^https?:/.exec(base)?.[0], wrong);
  const settings = {
    table,
    region,
    url: base,
    key,
    sortKey: sortKey && { name: sortKey, value: sortValue ?? "-" },
    expires,
    plaintext,
  };
  return {
    name: `dynamodb://${table}?region=${region}${endpoint === undefined ? "" : `&endpoint=${base}`}`,
    credentials: undefined,
    // Emulators on this machine lose everything when they restart.
    durability: durable(given, isLoopback(base, wrong) ? "not-declared" : "declared", wrong),
    store: () => ({ tag: "dynamodb", val: settings }),
    needsCredentials: true,
    kinds: ["aws"],
  };
}

function etcd(url, scheme) {
  const wrong = (what) => new ConfigError(`store url ${shown(url)}: ${what}`);
  if (url.includes("#") || isDoubtful(url)) throw wrong(SIGNS);
  if (UNFIT.test(url)) throw wrong(`it has a backslash or control characters; ${ETCD_FORM}`);
  const given = `${scheme === "etcds" ? "https" : "http"}${url.slice(scheme.length)}`;
  if (given.includes(",")) throw wrong("it names several hosts; here name one, or a load balancer");
  let address;
  try {
    address = new URL(given);
  } catch {
    throw wrong(`it cannot be read; ${ETCD_FORM}; ${SIGNS}`);
  }
  if (!/^https?:\/\/[^/]/.test(given) || address.pathname !== "/") throw wrong(ETCD_FORM);
  const parameters = named(address.search, ETCD, wrong);
  const [user = "", password = ""] = [
    parameters.user ?? decoded(address.username, wrong),
    parameters.password ?? decoded(address.password, wrong),
  ];
  if ((user === "") !== (password === "")) throw wrong("user and password belong together; write etcd://user:password@host");
  const base = `${address.protocol}//${address.hostname}:${literalPort(given) ?? "2379"}`;
  const plaintext = allowed(parameters, address.protocol, wrong);
  const { prefix } = parameters;
  return {
    name: `${scheme}://${base.slice(base.indexOf("//") + 2)}${prefix === undefined ? "" : `?prefix=${prefix}`}`,
    credentials: user === "" ? undefined : { user, password },
    durability: durable(parameters, "declared", wrong),
    store: (access) => ({ tag: "etcd", val: { url: base, prefix, access, plaintext } }),
    needsCredentials: false,
    kinds: ["token", "password"],
    /** Gets a token for a password. */
    login: loginOf(base),
  };
}

/** The domain of a Region; for rare partitions the endpoint must be given. */
function domain(region, wrong) {
  if (region.startsWith("cn-")) return "amazonaws.com.cn";
  if (/^(eusc|us-iso[a-z]*|eu-iso[a-z]*)-/.test(region)) throw wrong("the endpoint of this region is missing; add &endpoint=");
  return "amazonaws.com";
}

function named(search, known, wrong) {
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

function allowed({ plaintext }, protocol, wrong) {
  if (plaintext === undefined) return undefined;
  if (plaintext !== "allow") throw wrong("write plaintext=allow, or leave plaintext out");
  if (protocol === "https:") throw wrong("plaintext=allow is for http only; leave it out");
  return "allowed";
}

function durable(parameters, usual, wrong) {
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

function token(user, secret, wrong) {
  if (user !== "") throw wrong("a token stands alone, behind a colon; write upstash+https://:TOKEN@host");
  return secret === "" ? undefined : { token: secret };
}

function login(user, secret, wrong) {
  if (user === "" && secret === "") return undefined;
  if (user === "" || secret === "") throw wrong("user and password belong together; write webdis+http://user:password@host");
  return { user, password: secret };
}

function decoded(text, wrong) {
  try {
    // A percent sign that begins no escape is literal.
    return decodeURIComponent(text.replace(/%(?![0-9a-f]{2})/gi, "%25"));
  } catch {
    throw wrong("user, password or token is not UTF-8");
  }
}

/** The parser drops the default port of the scheme, which is not that of Webdis. */
function literalPort(address) {
  const [, authority] = /^https?:\/\/([^/?#]*)/.exec(address) ?? [];
  // After the last @, since there may be digits before it too.
  const port = /:([0-9]+)$/.exec(authority?.slice(authority.lastIndexOf("@") + 1))?.[1];
  return port && String(Number(port));
}

function isLoopback(url, wrong) {
  try {
    const { hostname } = new URL(url);
    return /^(localhost|.*\.localhost|127\.[0-9.]+|\[::1\]|\[::ffff:7f[0-9a-f]{2}:[0-9a-f]+\])$/.test(hostname);
  } catch {
    throw wrong("endpoint is not a url; write it like https://dynamodb.eu-west-1.amazonaws.com");
  }
}

/** True if an apparent path or parameters may be the rest of a token or password with unescaped characters. */
function isDoubtful(url) {
  return /[/?#\\].*@/s.test(url.replace(/^[^:]*:\/\//, ""));
}

/** A url without secrets: its scheme, and its host if its start and end are certain. */
export function shown(url) {
  const [, scheme, authority] = /^([a-z][a-z0-9+.-]*):\/\/([^/?#\\]*)/i.exec(url) ?? [];
  if (scheme === undefined) return '"..."';
  const [, host] = /^(?:.*@)?((?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?)$/is.exec(authority) ?? [];
  return JSON.stringify(`${scheme}://${isDoubtful(url) || host === undefined ? "..." : host}`);
}
