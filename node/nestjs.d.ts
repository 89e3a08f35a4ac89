/**
 * NestJS 10 to 12: methods whose work is done once on many machines.
 *
 * ```ts
 * @Module({ imports: [ScheduleModule.forRoot(), LeaseholdModule.forRoot("redis://locks")], providers: [Reports] })
 * class AppModule {}
 *
 * @Injectable()
 * class Reports {
 *   @Cron("0 2 * * *")
 *   @Once("nightly-report", { every: 86_400_000, wait: 3_600_000 })
 *   async nightly() {
 *     await write({ fence: currentRun()?.token, signal: currentRun()?.signal });
 *   }
 * }
 * ```
 */

import type { DynamicModule, FactoryProvider, ModuleMetadata } from "@nestjs/common";
import type { Client, ConnectOptions, Occurrence, OnceOptions, Run, SaveOptions } from "./index.js";

/**
 * Provides a {@link Client} to all modules, which constructors can have as well: `constructor(private readonly locks: Client)`.
 * It is closed at the application's shutdown, for which signals need `app.enableShutdownHooks()`.
 */
export class LeaseholdModule {
  private constructor();

  /** With the arguments of `connect`. */
  static forRoot(stores?: string | readonly string[] | null, options?: ConnectOptions): DynamicModule;

  /** With a factory of the client, such as one of `leasehold/testing`, or one that asks for your configuration. */
  static forRootAsync(from: {
    imports?: ModuleMetadata["imports"];
    inject?: FactoryProvider["inject"];
    useFactory: (...injected: any[]) => Client | Promise<Client>;
  }): DynamicModule;
}

/** Settings of {@link Once}; a function is called with the arguments of the method. */
export interface OnceDecoratorOptions<Args extends any[] = any[]> extends Omit<OnceOptions, "key" | "signal">, SaveOptions {
  /** The occurrence of the job; see `OnceOptions.key`. */
  key?: string | ((...args: Args) => string) | undefined;
}

/**
 * Decorates a method of an instance: each call is a run, as `client.once` makes it. The call gives the result of the method;
 * `undefined` if the work is done, somebody else is at it, or the pause of `retryAfter` is not over. With `saveResult`, a call whose work
 * is done gives the result that the first one has left, unless it is missing or not settled yet. It rejects as `client.once` does,
 * with a `GivenUpError` once `maxAttempts` have failed; what the method throws is the reason that is kept of an attempt.
 *
 * Its order among decorators that are not of parameters is free: what they say is found on both sides.
 */
export function Once<Args extends any[] = any[]>(
  name: string | ((...args: Args) => string),
  options: OnceDecoratorOptions<Args> & ({ key: string | ((...args: Args) => string) } | Exclude<Occurrence, { key: string }>),
): <Method extends (...args: Args) => Promise<any>>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<Method> & Admits<Method>,
) => TypedPropertyDescriptor<Method>;

/** Methods whose result says that it may be missing. */
type Admits<Method extends (...args: any[]) => Promise<any>> =
  undefined extends Awaited<ReturnType<Method>>
    ? unknown
    : void extends Awaited<ReturnType<Method>>
      ? unknown
      : { "the method must admit undefined, for work that is done already": never };

/** The run within which the current code runs: its token for writes, its signal for requests. `null` outside of any. */
export function currentRun(): Run | null;
