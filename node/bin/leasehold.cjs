#!/usr/bin/env node
"use strict";

process.exitCode = require("../lib/native.cjs").run(["leasehold", ...process.argv.slice(2)]);
