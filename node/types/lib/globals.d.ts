// Globals that the library asks for, and only some hosts have.

/** Of a bundle that webpack makes. */
declare const __webpack_require__: unknown;

declare namespace Reflect {
  const getMetadataKeys: ((target: object) => unknown[]) | undefined;
  function getMetadata(key: unknown, target: object): unknown;
  function defineMetadata(key: unknown, value: unknown, target: object): void;
}
