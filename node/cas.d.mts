export * from "./cas.js";
