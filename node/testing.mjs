import testing from "./testing.cjs";

export const { FakeClock, FakeItemStore, connect, connectItems } = testing;
