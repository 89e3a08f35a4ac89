// The login of etcd: a token for a user and a password.

import errors from "./shared/errors.mjs";
import { perform } from "./http.mjs";

const { StoreRefusedError, StoreUnavailableError } = errors;

const PATIENCE_MS = 5_000;

/** A function that gets a token from the server at `base`. */
export function loginOf(base) {
  return async (fetch, { user, password }) => {
    const request = {
      url: `${base}/v3/auth/authenticate`,
      method: "POST",
      headers: [{ name: "content-type", value: "application/json" }],
      body: new TextEncoder().encode(JSON.stringify({ name: user, password })),
    };
    const { tag, val } = await perform(fetch, request, PATIENCE_MS);
    if (tag !== "http-response") throw new StoreUnavailableError(`etcd does not answer the login: ${val.detail ?? val.kind}`);
    const answer = parsed(val.body);
    if (val.status === 200 && typeof answer.token === "string") return { tag: "token", val: { token: answer.token } };
    // Never what was sent, only the words of etcd.
    const said = typeof answer.message === "string" ? answer.message.slice(0, 200) : `HTTP status ${val.status}`;
    throw new StoreRefusedError(`the login was refused: check user and password (etcd said: ${said})`);
  };
}

function parsed(body) {
  try {
    return Object(JSON.parse(new TextDecoder().decode(body)));
  } catch {
    return {};
  }
}
