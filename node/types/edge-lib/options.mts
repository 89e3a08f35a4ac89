// The options that leasehold/edge takes, by name and kind, are those of its types. Only compiled, never run.

import type { ConnectOptions, LockOptions, OnceOptions, TryOptions } from "leasehold/edge";
import { CONNECT } from "../../package/edge/client.mjs";
import options from "../../package/edge/shared/options.mjs";
import { like } from "../lib/options.mjs";

like<ConnectOptions>()(CONNECT);
like<LockOptions>()(options.LOCK);
like<TryOptions>()(options.TRY);
like<OnceOptions>()(options.RUN);
