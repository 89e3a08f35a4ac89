"use strict";

// The metrics of leasehold in a registry of prom-client. Documented in ../prometheus.d.ts.

const { observe } = require("./observe.cjs");

const COUNTERS = {
  leasehold_acquire_total: {
    help: "Acquisitions that ended, by outcome.",
    label: "outcome",
    values: ["acquired", "busy", "timed_out", "throttled", "unavailable", "abstains", "refused", "cancelled", "done"],
  },
  leasehold_renew_total: {
    help: "Renewals that ended, by outcome.",
    label: "outcome",
    values: ["renewed", "recovered", "delayed"],
  },
  leasehold_lost_total: {
    help: "Leases that were lost while held, by reason.",
    label: "reason",
    values: ["expired", "max_hold", "taken_over", "released", "record_gone", "revoked"],
  },
  leasehold_release_total: { help: "Releases that ended, by outcome.", label: "outcome", values: ["confirmed", "unconfirmed"] },
  leasehold_run_total: {
    help: "Runs, by outcome.",
    label: "outcome",
    values: ["finished", "finish_unconfirmed", "skipped", "taken_over", "forgotten", "given_up"],
  },
  leasehold_callback_failures_total: {
    help: "Callbacks that ended with an error, by their name.",
    label: "callback",
    values: ["on_start", "on_stop", "on_gain", "on_loss"],
  },
  leasehold_events_dropped_total: { help: "Events that nobody took in time, with their samples." },
};
const HISTOGRAMS = {
  leasehold_wait_seconds: {
    help: "Time from the call to the grant or failure.",
    buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 10, 30, 60, 300],
  },
  leasehold_hold_seconds: {
    help: "Time from the grant to the end of the lease.",
    buckets: [0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800, 7200],
  },
  leasehold_renew_duration_seconds: {
    help: "Time that one request for renewal took.",
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
  },
  leasehold_validity_left_seconds: {
    help: "Validity that was left when a renewal succeeded: the earliest warning.",
    buckets: [0.1, 0.5, 1, 2, 5, 10, 15, 20, 30, 60, 300],
  },
};

/** Counts into a registry of this `prom-client` from now on. */
function collect(prom, { register = prom.register, buckets = {}, ...rest } = {}) {
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw new TypeError(`there is no option ${unknown}; there are register, buckets`);
  const misnamed = Object.keys(buckets).find((name) => !Object.hasOwn(HISTOGRAMS, name));
  if (misnamed !== undefined) {
    throw new TypeError(`there is no histogram ${misnamed}; there are ${Object.keys(HISTOGRAMS).join(", ")}`);
  }
  const taken = [...Object.keys(COUNTERS), ...Object.keys(HISTOGRAMS)].find((name) => register.getSingleMetric(name));
  if (taken !== undefined) throw new Error(`this registry has a metric ${taken}: it takes one collection at a time`);
  const registers = [register];
  const metrics = new Map();
  for (const [name, { help, label, values = [] }] of Object.entries(COUNTERS)) {
    const counter = new prom.Counter({ name, help, labelNames: label ? [label] : [], registers });
    // The first loss is then seen as an increase.
    for (const value of values) counter.inc({ [label]: value }, 0);
    metrics.set(name, counter);
  }
  for (const [name, { help, buckets: usual }] of Object.entries(HISTOGRAMS)) {
    metrics.set(name, new prom.Histogram({ name, help, buckets: buckets[name] ?? usual, registers }));
  }
  const stop = observe({
    sample: ({ name, kind, value, labels }) => {
      // One of a later version has no metric here.
      if (kind === "counter") metrics.get(name)?.inc(labels, value);
      else metrics.get(name)?.observe(labels, value);
    },
  });
  return () => {
    stop();
    for (const name of metrics.keys()) register.removeSingleMetric(name);
    metrics.clear();
  };
}

const adapter = (prom) => ({ collect: (given) => collect(prom, given) });

module.exports = { adapter };
