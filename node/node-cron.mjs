import adapter from "./node-cron.cjs";

export const { RunCoordinator } = adapter;
