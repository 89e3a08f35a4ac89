/**
 * The metrics of leasehold in a registry of `prom-client`, which this module needs.
 *
 * Names, labels and units are those of Rust and Python. Counters begin with the labels that are known, so that the first loss is
 * seen as an increase.
 */

import type { Registry } from "prom-client";

/** The histograms. Their units are seconds. */
export type HistogramName =
  | "leasehold_wait_seconds"
  | "leasehold_hold_seconds"
  | "leasehold_renew_duration_seconds"
  | "leasehold_validity_left_seconds";

/** Settings of a collection. */
export interface CollectOptions {
  /** The registry; by default that of `prom-client`. */
  register?: Registry | undefined;
  /** Other upper bounds for the buckets of some histograms, in seconds. */
  buckets?: Partial<Record<HistogramName, number[]>> | undefined;
}

/**
 * Counts into a registry from now on. The returned function counts what is pending, and takes the metrics out of the registry. A
 * registry takes one collection at a time.
 *
 * @throws Error for a registry that has these metrics, TypeError for unknown options and histograms.
 */
export function collect(options?: CollectOptions): () => void;
