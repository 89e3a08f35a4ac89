// Serves Cosmos DB on 127.0.0.1. It checks the signatures of all but new databases and containers, and of patches, which the
// emulator does not, and shows an account as told. Arguments: folder with node_modules, port, key, consistency, do several regions write?
import { createHmac } from "node:crypto";
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, port, key, consistency, several] = process.argv.slice(2);
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
  serve(request, response);
});
server.listen(Number(port), "127.0.0.1");
