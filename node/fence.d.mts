export * from "./fence.js";
