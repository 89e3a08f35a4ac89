// Urls of objects in a cloud's storage service: s3://, azblob://, gs:// and cosmos://.

import { allowed, durable, isLoopback, named, shown } from "./parameters.mjs";
import errors from "./shared/errors.mjs";

const { ConfigError } = errors;

/** How many names each url begins with, the credentials that it takes, and how it is written. */
export const FORMS = {
  s3: { names: 1, kinds: ["aws"], form: "write s3://BUCKET?region=eu-west-1, or s3://BUCKET/PREFIX?region=..." },
  azblob: {
    names: 2,
    kinds: ["token", "account-key", "access-signature"],
    form: "write azblob://ACCOUNT/CONTAINER, or azblob://ACCOUNT/CONTAINER/PREFIX",
  },
  gs: { names: 1, kinds: ["token", "aws"], form: "write gs://BUCKET, or gs://BUCKET/PREFIX" },
  cosmos: { names: 3, kinds: ["token", "account-key"], form: "write cosmos://ACCOUNT/DATABASE/CONTAINER, or with /PREFIX" },
};
const COMMON = ["endpoint", "durable", "plaintext"];
const NAME = /^(?!\.)[a-z0-9._-]{3,222}$/;
const REGION = /^[a-z0-9][a-z0-9-]{0,62}$/;
const PART = /^(?!\.+$)[\w.~-]+$/;

/** A store for the component, as `parsed` in urls.mjs. */
export function objects(url, scheme) {
  const { names, kinds, form } = FORMS[scheme];
  const wrong = (what) => new ConfigError(`store url ${shown(url)}: ${what}`);
  if (/[@#\\%\u0000-\u001f\u007f]/.test(url.split("?", 1)[0])) {
    throw wrong(`the url must not contain keys, nor a name with # @ \\ %; ${form}`);
  }
  const [, path, query = ""] = /^[a-z0-9]+:\/\/([^?]*)(\?.*)?$/.exec(url) ?? [];
  if (path === undefined) throw wrong(form);
  const parts = path.replace(/\/+$/, "").split("/");
  if (parts.length < names) throw wrong(`the bucket, database or container is missing; ${form}`);
  const prefix = parts.splice(names);
  if (!parts.every((name, at) => NAME.test(scheme === "cosmos" && at > 0 ? name.toLowerCase() : name))) {
    throw wrong(`a name has 3 to 222 lowercase letters, digits, dashes, dots and underscores; ${form}`);
  }
  if (!prefix.every((part) => PART.test(part)) || prefix.join("/").length > 99) {
    throw wrong("a prefix has at most 99 letters, digits and -._~ between single slashes");
  }
  const given = named(query, scheme === "s3" ? ["region", ...COMMON] : COMMON, wrong);
  if (scheme === "s3" && given.region === undefined) throw wrong(`the region is missing; ${form}`);
  if (scheme === "s3" && !REGION.test(given.region)) throw wrong("region is not a region; write one such as eu-west-1, or auto for R2");
  const { base, place } = given.endpoint === undefined ? inTheCloud(scheme, parts, given) : at(given.endpoint, scheme, parts, wrong);
  const plaintext = allowed(given, new URL(base).protocol, wrong);
  const isHere = isLoopback(base, wrong);
  const below = prefix.length === 0 ? undefined : `${prefix.join("/")}/`;
  const settings = { url: base, place, prefix: below, region: given.region, plaintext };
  const shownQuery = ["region", "endpoint"].filter((name) => name in given).map((name) => `${name}=${given[name]}`);
  return {
    name: `${scheme}://${[...parts, ...prefix].join("/")}${shownQuery.length === 0 ? "" : `?${shownQuery.join("&")}`}`,
    credentials: undefined,
    // Emulators on this machine lose everything when they restart.
    durability: durable(given, isHere ? "not-declared" : "declared", wrong),
    /** Google takes HMAC keys by its XML API alone. */
    store: (access, kind) => ({ tag: "objects", val: { ...settings, service: serviceOf(scheme, kind), access } }),
    // Emulators of Google ask for none.
    needsCredentials: scheme !== "gs" || !isHere,
    /** The kind of the first credentials decides on the API. */
    isDecidedByKind: scheme === "gs",
    kinds,
  };
}

function serviceOf(scheme, kind) {
  if (scheme === "gs") return kind === "aws" ? "gcs-xml" : "gcs";
  return { s3: "s3", azblob: "azure-blob", cosmos: "cosmos-db" }[scheme];
}

/** @param {string} scheme @param {string[]} parts @param {Record<string, any>} given */
function inTheCloud(scheme, parts, { region }) {
  const [first, ...rest] = parts;
  switch (scheme) {
    case "s3": {
      const host = `s3.${region}.amazonaws.com${region.startsWith("cn-") ? ".cn" : ""}`;
      // The certificate covers one label.
      return first.includes(".") ? { base: `https://${host}`, place: first } : { base: `https://${first}.${host}`, place: "" };
    }
    case "azblob":
      return { base: `https://${first}.blob.core.windows.net`, place: rest[0] };
    case "gs":
      return { base: "https://storage.googleapis.com", place: first };
    default:
      return { base: `https://${first}.documents.azure.com`, place: rest.join("/") };
  }
}

function at(endpoint, scheme, parts, wrong) {
  let address;
  try {
    address = new URL(endpoint);
  } catch {
    throw wrong("endpoint is not a url; write it like https://host");
  }
  const { protocol, username, password, pathname, search, hash, origin } = address;
  if (!["http:", "https:"].includes(protocol) || username || password) {
    throw wrong("endpoint must begin with https:// or http://, and has no user or password");
  }
  const path = pathname.replace(/^\/|\/+$/g, "");
  if (search || hash || (path !== "" && scheme !== "azblob")) throw wrong("endpoint has more than a host and a port");
  const place = scheme === "cosmos" ? parts.slice(1).join("/") : [path, parts.at(-1)].filter(Boolean).join("/");
  return { base: origin, place };
}
