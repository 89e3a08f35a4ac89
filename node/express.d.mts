export * from "./express.js";
