import adapter from "./fastify.cjs";

export const { idempotency } = adapter;
