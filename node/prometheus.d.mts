export * from "./prometheus.js";
