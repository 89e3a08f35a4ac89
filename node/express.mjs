import adapter from "./express.cjs";

export const { idempotency } = adapter;
