// Serves Cosmos DB on 127.0.0.1. It checks the signatures of all but new databases and containers, and of patches, which the
// emulator does not, and shows an account as told. Arguments: folder with node_modules, port, key, consistency, do several regions write?,
// how often a document is shown as it was before its last write.
import { createHmac } from "node:crypto";
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, port, key, consistency, several, behind = "0"] = process.argv.slice(2);
const { createHttpServer } = createRequire(join(folder, "package.json"))("@vercel/cosmosdb-server");

function isSigned(request) {
  const parts = decodeURIComponent(new URL(request.url, "http://host").pathname).split("/").filter(Boolean);
  const kind = parts.length % 2 ? parts.at(-1) : (parts.at(-2) ?? "");
  const link = (parts.length % 2 ? parts.slice(0, -1) : parts).join("/");
  const date = request.headers["x-ms-date"] ?? "";
  const text = `${request.method.toLowerCase()}\n${kind}\n${link}\n${date.toLowerCase()}\n\n`;
  const signature = createHmac("sha256", Buffer.from(key, "base64")).update(text, "utf8").digest("base64");
  return decodeURIComponent(request.headers.authorization ?? "") === `type=master&ver=1.0&sig=${signature}`;
}

function answer(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

// By their paths: as each is now, as it was before, and how often that is still shown.
const documents = new Map();
const MISSING = { status: 404, body: JSON.stringify({ code: "NotFound", message: "there is no such document" }) };

// Notes what a write has left, when its answer is made.
function note(request, response) {
  const { end } = response;
  response.end = (body, ...rest) => {
    if ([200, 201].includes(response.statusCode)) {
      const list = new URL(request.url, "http://host").pathname.replace(/\/docs.*/, "/docs/");
      const path = list + encodeURIComponent(JSON.parse(body).id);
      const before = documents.get(path)?.now ?? MISSING;
      documents.set(path, { now: { status: 200, etag: response.getHeader("etag"), body }, before, left: Number(behind) });
    }
    return end.call(response, body, ...rest);
  };
}

function isBehind(request, response) {
  const document = documents.get(new URL(request.url, "http://host").pathname);
  if (request.method !== "GET" || !document || document.left === 0) return false;
  document.left -= 1;
  const { status, etag, body } = document.before;
  response.writeHead(status, { "content-type": "application/json", ...(etag && { etag }) });
  response.end(body);
  return true;
}

const server = createHttpServer({ keepAlive: true });
const [serve] = server.listeners("request");
server.removeAllListeners("request");
server.on("request", (request, response) => {
  const makes = request.method === "POST" && /^\/dbs(\/[^/]+\/colls)?$/.test(request.url);
  // Only tests of guards patch, which the client never does.
  if (!makes && request.method !== "PATCH" && !isSigned(request)) return answer(response, 401, { code: "Unauthorized", message: "the signature is wrong" });
  if (request.url === "/") {
    const policy = { defaultConsistencyLevel: consistency };
    const regions = { writableLocations: [{ name: "here" }], enableMultipleWriteLocations: several === "true" };
    return answer(response, 200, { ...regions, userConsistencyPolicy: policy });
  }
  // Without it the emulator fails at a document that is missing.
  request.headers["x-ms-documentdb-query-enablecrosspartition"] = "true";
  if (isBehind(request, response)) return;
  const writes = ["POST", "PUT"].includes(request.method) && request.url.includes("/docs");
  if (writes && request.headers["x-ms-documentdb-isquery"] !== "True") note(request, response);
  serve(request, response);
});
server.listen(Number(port), "127.0.0.1");
