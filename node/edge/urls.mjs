// Store urls for the stores that can be reached with `fetch`. The native package reads them in the same way; it is less strict
// with repeated or empty parameters and with control characters, and has further parameters.

import { loginOf } from "./etcd.mjs";
import { FORMS, objects } from "./objects.mjs";
import { UNFIT, allowed, durable, isDoubtful, isLoopback, named, shown } from "./parameters.mjs";
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
      if (scheme in FORMS) return objects(url, scheme);
      throw new ConfigError(
        `store url ${shown(url)}: use dynamodb://, s3://, azblob://, gs://, cosmos://, etcd://, upstash+https:// or ` +
          "webdis+http://; other stores need native code, and the package leasehold",
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

function token(user, secret, wrong) {
  if (user !== "") throw wrong("the token must follow a colon; write upstash+https://:TOKEN@host");
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

