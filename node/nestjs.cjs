"use strict";

// Work of Nest applications that is done once. Documented in nestjs.d.ts.

module.exports = require("./lib/nest.cjs").adapter(require("@nestjs/common"));
