"use strict";

// The decorators of leasehold/nestjs, over the module of Nest that the application has loaded.

const { builtin } = require("./builtin.cjs");
const { AsyncLocalStorage } = builtin("node:async_hooks", () => require("node:async_hooks"));
const { Client, connect } = require("./client.cjs");
const { ConfigError } = require("./errors.cjs");
const { unspoken } = require("./occurrence.cjs");
const { NATIVE_RUN, options } = require("./options.cjs");

/** The property in which Nest puts the client. */
const CLIENT = Symbol.for("leasehold.nestjs.client");
/** The run within which the current code runs. */
const within = new AsyncLocalStorage();
const { key: _, signal: __, ...RUN } = NATIVE_RUN;
const SETTINGS = /** @type {const} */ ({ ...RUN, saveResult: "true or false" });

function currentRun() {
  return within.getStore() ?? null;
}

function adapter({ Inject, Module }) {
  class LeaseholdModule {
    #client;

    constructor(client) {
      this.#client = client;
    }

    static forRoot(stores, given) {
      return LeaseholdModule.forRootAsync({ useFactory: () => connect(stores, given) });
    }

    /** @param {Record<string, any>} given */
    static forRootAsync({ imports, inject, useFactory }) {
      const providers = [{ provide: Client, inject: inject ?? [], useFactory }];
      return { module: LeaseholdModule, global: true, imports: imports ?? [], providers, exports: [Client] };
    }

    /** After the hooks that let the application finish its work. */
    async onApplicationShutdown() {
      await this.#client.close();
    }
  }
  Inject(Client)(LeaseholdModule, undefined, 0);
  Module({})(LeaseholdModule);

  /** @param {unknown} name @param {Record<string, any>} given */
  function Once(name, { key: occurrence, ...given } = {}) {
    if (typeof name !== "string" && typeof name !== "function") throw new TypeError("@Once needs the name of the job");
    if (occurrence !== undefined && typeof occurrence !== "string" && typeof occurrence !== "function") {
      throw new TypeError("key must be a string, or a function of the arguments of the call");
    }
    const settings = options(given, SETTINGS);
    const missing = unspoken({ key: occurrence, ...settings });
    if (missing !== undefined) throw new ConfigError(`@Once: ${missing}`);
    return (target, key, descriptor) => {
      const method = descriptor?.value;
      if (typeof method !== "function" || typeof target === "function") {
        throw new TypeError("@Once decorates methods of instances");
      }
      Inject(Client)(target, CLIENT);
      const once = {
        async [key](...args) {
          const client = this[CLIENT];
          if (client === undefined) throw new ConfigError("@Once needs LeaseholdModule, and an instance that Nest has made");
          const named = { ...settings, key: ofCall(occurrence, args) };
          const body = (run) => within.run(run, () => method.apply(this, args));
          const outcome = await client.once(ofCall(name, args), named, body);
          if (outcome.ran) return outcome.value;
          const kept = settings.saveResult && outcome.reason === "done" ? outcome.result : undefined;
          // In the place of one that is missing, or that a quorum has not settled.
          return typeof kept === "symbol" ? undefined : kept;
        },
      }[key];
      // Nest and its modules keep what other decorators say at the method itself.
      for (const about of Reflect.getMetadataKeys?.(method) ?? []) {
        Reflect.defineMetadata(about, Reflect.getMetadata(about, method), once);
      }
      return { ...descriptor, value: once };
    };
  }

  return { LeaseholdModule, Once, currentRun };
}

/** A setting that may depend on the arguments of a call. */
function ofCall(setting, args) {
  return typeof setting === "function" ? setting(...args) : setting;
}

module.exports = { adapter };
