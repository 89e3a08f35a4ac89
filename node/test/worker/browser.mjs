// A web worker with a lock. It tells the page what it has seen.

import * as edge from "/leasehold/edge/index.mjs";
import { failed, workAll } from "./work.mjs";

const seen = async () => workAll(edge, await (await fetch("/stores.json")).json(), "browser");

postMessage(await seen().catch(failed));
