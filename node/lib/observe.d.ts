// Events and samples of all clients of a process.

/**
 * Calls the observer from now on for events and samples of all clients of this package in this process, on any thread. The
 * calls run on this event loop, a moment later. The returned function delivers pending items, and ends the observation.
 * Observing does not keep the process alive; items that are pending when the process exits by itself, or by `process.exit`, are
 * delivered then.
 *
 * A slow observer delays no renewal: above 10,000 pending events and samples, further ones are dropped, and reported as the
 * event `lock.events_dropped`. Its exceptions and rejections are shown as a warning of the process.
 *
 * @throws TypeError for an invalid observer.
 */
export function observe(observer: Observer): () => void;

/** A receiver of events, of samples, or of both. */
export interface Observer {
  /** The lowest level of events to receive; default `"info"`. */
  level?: Level | undefined;
  /** Called with each event of that level and above. */
  event?: ((event: LockEvent) => void) | undefined;
  /** Called with each sample of a metric. */
  sample?: ((sample: Sample) => void) | undefined;
}

/** The level of an event, from the lowest up. */
export type Level = "trace" | "debug" | "info" | "warn" | "error";

/** An event of a client. */
export interface LockEvent {
  /** A stable name, such as `lock.acquired` or `lock.lost`; may be empty. docs/reliability.md lists them. */
  event: string;
  /** The level. */
  level: Level;
  /** The time of the event, in ms since 1970. */
  time: number;
  /** A message for people; it may change. */
  message: string;
  /**
   * Details: `resource`, `owner`, `token`, `reason` and so on. As in every language, a name that ends in `_s` is
   * a duration in seconds.
   */
  fields: Record<string, string | number | boolean>;
}

/** One step of a counter, or one value of a histogram. */
export interface Sample {
  /** Such as `leasehold_lost_total`; docs/reliability.md lists them. */
  name: string;
  /** The kind. */
  kind: "counter" | "histogram";
  /** The increment of a counter; for a histogram, seconds. */
  value: number;
  /** Such as `reason`; never the name of a resource, since each name would become a separate time series. */
  labels: Record<string, string>;
}
