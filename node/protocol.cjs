"use strict";

// The protocol without I/O. Documented in protocol.d.ts and lib/values/.

const { CommandRejectedError } = require("./lib/errors.cjs");
const { Client, Guard, Reader, redis, runs } = require("./lib/machine.cjs");
const { clocks } = require("./lib/native.cjs");

const encode = (commands) => redis("encode", commands);
const channel = (resource) => redis("channel", resource);
const releasedBy = (name, message) => redis("released-by", name, message) ?? null;
const runResource = (name, key) => runs("run-resource", name, key);
const periodKey = (unixMs, every, offset = 0) => runs("period-key", unixMs, every, offset);
const now = () => clocks();

module.exports = { Client, CommandRejectedError, Guard, Reader, channel, encode, now, periodKey, releasedBy, runResource };
