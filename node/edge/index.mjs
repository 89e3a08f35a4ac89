export * from "./face.mjs";
import { connector } from "./client.mjs";
import { load } from "./inline.mjs";

export const connect = connector(load);
