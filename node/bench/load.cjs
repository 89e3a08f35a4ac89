// What `require` of a library costs: library. Prints milliseconds and bytes as JSON.

"use strict";

const [library] = process.argv.slice(2);
const memory = process.memoryUsage().rss;
const start = performance.now();
for (const name of library.split("+")) require(name);
const took = performance.now() - start;
console.log(JSON.stringify({ took, memory: process.memoryUsage().rss - memory }));
