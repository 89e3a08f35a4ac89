// The options that the library takes, by name and kind, are those of its types. Only compiled, never run.

import type {
  AllOptions,
  AnyOptions,
  ConnectOptions,
  ElectOptions,
  HolderOptions,
  LockOptions,
  OnceOptions,
  RwLockOptions,
  ShardsOptions,
  TryOptions,
  WatchOptions,
} from "leasehold";
import * as options from "../../package/lib/options.cjs";

export interface Kinds {
  number: number;
  text: string;
  "true or false": boolean;
  "Uint8Array or Buffer": Uint8Array;
  AbortSignal: AbortSignal;
  function: (...given: any[]) => unknown;
  "object or function": object;
}
/** The kinds of the options that the types name. */
type Of<Told> = { readonly [Name in keyof Told]-?: KindOf<NonNullable<Told[Name]>> };
type KindOf<Value> = { [Kind in keyof Kinds]: [Value] extends [Kinds[Kind]] ? Kind : never }[keyof Kinds];

/** Takes what has all of their names and kinds, and no other name. */
export const like =
  <Told,>() =>
  <Have extends Of<Told>>(_: Have & { [Name in Exclude<keyof Have, keyof Told>]: never }): void => {};

like<ConnectOptions>()(options.CONNECT);
like<AllOptions>()(options.ALL);
like<AnyOptions>()(options.ANY);
like<LockOptions>()(options.NATIVE_LOCK);
like<TryOptions>()(options.NATIVE_TRY);
like<OnceOptions>()(options.NATIVE_RUN);
like<ElectOptions>()(options.ELECT);
like<ShardsOptions>()(options.SHARDS);
like<HolderOptions>()(options.HOLDER);
like<RwLockOptions & AllOptions>()({ ...options.ALL, ...options.RW_LOCK });
like<WatchOptions>()(options.WATCH);
