"use strict";

const { Client, connect } = require("./lib/client.cjs");
const { Election } = require("./lib/election.cjs");
const { Shard, Shards } = require("./lib/shards.cjs");
const { CommandRejectedError, NOTHING_TO_EXTEND, errorOf, ...errors } = require("./lib/errors.cjs");
const { Lease, Leases, Run } = require("./lib/lease.cjs");
const { LockAny, Permit, RwLock, Semaphore } = require("./lib/permits.cjs");
const { observe } = require("./lib/observe.cjs");
const { noResult, unsettled } = require("./lib/results.cjs");

module.exports = { connect, observe, Client, Election, Lease, Leases, LockAny, Permit, Run, RwLock, Semaphore, Shard, Shards, noResult, unsettled, ...errors };
