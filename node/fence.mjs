import fence from "./fence.cjs";

export const { DynamodbGuard, Guards, PostgresGuard, PostgresRowGuard, RedisGuard } = fence;
