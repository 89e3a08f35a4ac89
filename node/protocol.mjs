import protocol from "./protocol.cjs";

export const { Client, CommandRejectedError, Guard, Reader, channel, encode, now, periodKey, releasedBy, runResource } = protocol;
