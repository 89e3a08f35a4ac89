export * from "./node-cron.js";
