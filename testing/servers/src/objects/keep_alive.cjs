// Keeps idle connections for two minutes. By Node's default it is 5 s, and a client that sends a request at that moment finds its
// connection reset.
"use strict";

const { Server } = require("node:http");

const { listen } = Server.prototype;
Server.prototype.listen = function (...options) {
  this.keepAliveTimeout = 120_000;
  return listen.apply(this, options);
};
