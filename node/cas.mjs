import cas from "./cas.cjs";

export const { connect, Items } = cas;
