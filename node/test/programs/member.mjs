import "./count.mjs";

// The channel to the primary would keep it alive.
process.disconnect();
