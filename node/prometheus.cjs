"use strict";

// The metrics of leasehold in a registry of prom-client. Documented in prometheus.d.ts.

module.exports = require("./lib/prometheus.cjs").adapter(require("prom-client"));
