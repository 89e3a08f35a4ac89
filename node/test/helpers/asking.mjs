// Requests of a test to its own HTTP server, each on its own connection.

import { request } from "node:http";

/** A function that asks the server of this port; what is asked for by default is the work `/charge`. */
export function asking(port) {
  return (path = "/charge", { key = "k1", body = { eur: 9 }, method = "POST", headers = {}, patience } = {}) =>
    new Promise((resolve, reject) => {
      const text = typeof body === "string" ? body : JSON.stringify(body);
      const given = { "Content-Type": typeof body === "string" ? "text/plain" : "application/json", ...headers };
      if (key !== null) given["Idempotency-Key"] = key;
      const asked = request({ port, host: "127.0.0.1", path, method, headers: given, agent: false }, (answer) => {
        const chunks = [];
        answer.on("data", (chunk) => chunks.push(chunk));
        answer.on("error", reject);
        const end = () => Buffer.concat(chunks).toString();
        answer.on("end", () => resolve({ status: answer.statusCode, headers: answer.headers, raw: answer.rawHeaders, text: end() }));
      });
      asked.on("error", reject);
      asked.end(text);
      patience?.addEventListener("abort", () => asked.destroy(new Error("the client has gone")));
    });
}
