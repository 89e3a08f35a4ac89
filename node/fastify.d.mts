export * from "./fastify.js";
