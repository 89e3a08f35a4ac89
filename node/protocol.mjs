import protocol from "./protocol.cjs";

export const { Client, CommandRejectedError, Guard, Reader, channel, encode, now, periodSlot, releasedBy, runResource } = protocol;
