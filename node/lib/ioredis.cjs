"use strict";

// Turns clients of ioredis into store urls. Options that a url cannot express are refused: a lock on another server or key
// than the one the others use would exclude nobody.

const { ConfigError } = require("./errors.cjs");

const INSTEAD = "give the store url of the server as a string, such as redis://HOST:6379";
/** Settings of TLS that the scheme of a url already expresses. */
const PLAIN_TLS = { rejectUnauthorized: [true], servername: [] };

/** Returns the url, and the prefix of this client's keys. */
function storeOf(client) {
  if (typeof client === "string") return { url: client, prefix: "" };
  const options = client?.options;
  if (typeof options !== "object" || options === null) {
    throw new TypeError("give a server as its url, or as a client of ioredis");
  }
  return { url: client.isCluster ? cluster(client) : single(options), prefix: prefix(options.keyPrefix ?? "") };
}

function prefix(given) {
  const text = Buffer.isBuffer(given) ? given.toString() : given;
  if (typeof text !== "string" || !Buffer.from(text).equals(Buffer.from(given))) {
    throw new ConfigError("the keyPrefix of this client is not a string, as names of locks must be");
  }
  return text;
}

/** Clients of other libraries have options too, which would be read as a server on this machine. */
function recognized(options) {
  const { Connector, host, port, path, sentinels } = options;
  if (Connector) throw new ConfigError(`a Connector of its own cannot be written into a url: ${INSTEAD}`);
  const isForeign = "url" in options || "socket" in options;
  if (isForeign || [host, port, path, sentinels].every((given) => given === undefined || given === null)) {
    throw new ConfigError(`this is not a client of ioredis with a server in its options: ${INSTEAD}`);
  }
}

function single(options) {
  recognized(options);
  const { host, port, path, db, sentinels, name, role } = options;
  if (options.natMap) throw new ConfigError("a natMap cannot be written into a url: give a url that leads to the server");
  if (sentinels) {
    if (role === "slave") throw new ConfigError("locks are kept on the master, but this client connects to a replica");
    if (typeof name !== "string" || name === "") throw new ConfigError("the name of the master is missing");
    const { sentinelUsername, sentinelPassword, sentinelTLS, enableTLSForSentinelMode, tls } = options;
    const isEncrypted = Boolean(enableTLSForSentinelMode && tls);
    if (isEncrypted !== Boolean(sentinelTLS)) {
      throw new ConfigError("TLS for Sentinels alone, or for servers alone, cannot be written into a url: give it to both");
    }
    if (isEncrypted) encrypted(sentinelTLS, undefined);
    const whoWeAre = query({ sentinel_username: sentinelUsername, sentinel_password: sentinelPassword });
    const hosts = sentinels.map((sentinel) => address(sentinel, 26_379)).join(",");
    const scheme = isEncrypted ? encrypted(tls, undefined) : "redis";
    return `${scheme}+sentinel://${login(options)}${hosts}/${encodeURIComponent(name)}/${db ?? 0}${whoWeAre}`;
  }
  if (path) return `redis+unix://${login(options)}${encodeURI(path)}?db=${db ?? 0}`;
  return `${options.tls ? encrypted(options.tls, host) : "redis"}://${login(options)}${address({ host, port }, 6379)}/${db ?? 0}`;
}

function cluster(client) {
  const { redisOptions = {}, natMap } = client.options;
  if (natMap) throw new ConfigError("a natMap cannot be written into a url: give a url that leads to the nodes");
  if (redisOptions.Connector) throw new ConfigError(`a Connector of its own cannot be written into a url: ${INSTEAD}`);
  if (!Array.isArray(client.startupNodes)) throw new ConfigError(`this is not a cluster of ioredis: ${INSTEAD}`);
  const seeds = client.startupNodes.map(seed).map((node) => ({ ...redisOptions, ...node }));
  const [scheme, ...others] = seeds.map(({ tls }) => (tls ? encrypted(tls, undefined) : "redis"));
  const isAlike = (seed) => login(seed) === login(seeds[0]);
  if (!seeds.every(isAlike) || others.some((other) => other !== scheme)) {
    throw new ConfigError("the nodes of this cluster have different logins, or TLS for some: a url has one of each for all");
  }
  return `${scheme}+cluster://${login(seeds[0])}${seeds.map((node) => address(node, 6379)).join(",")}`;
}

function seed(node) {
  if (typeof node === "number") return { port: node };
  if (typeof node !== "string") return node;
  const { protocol, hostname, port, username, password } = new URL(node.includes("://") ? node : `redis://${node}`);
  const found = { host: hostname, port: port || 6379 };
  if (password) Object.assign(found, { username: decodeURIComponent(username), password: decodeURIComponent(password) });
  return protocol === "rediss:" ? { ...found, tls: {} } : found;
}

function login({ username, password }) {
  if (!password) return "";
  return `${encodeURIComponent(username ?? "")}:${encodeURIComponent(password)}@`;
}

function address({ host, port }, usual) {
  const name = host ?? "localhost";
  return `${name.includes(":") && !name.startsWith("[") ? `[${name}]` : name}:${port ?? usual}`;
}

function encrypted(tls, host) {
  for (const [name, value] of Object.entries(tls === true ? {} : tls)) {
    if (value === undefined || value === null) continue;
    if (PLAIN_TLS[name]?.includes(value) || (name === "servername" && value === host)) continue;
    throw new ConfigError(`tls.${name} cannot be written into a url: give a rediss:// url, with the parameters ca, cert and key`);
  }
  return "rediss";
}

function query(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value);
  return given.length === 0 ? "" : `?${given.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&")}`;
}

module.exports = { storeOf };
