import testing from "./testing.cjs";

export const { FakeClock, connect } = testing;
