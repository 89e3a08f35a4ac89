import fence from "./fence.cjs";

export const { CosmosGuard, DynamodbGuard, Guards, ObjectGuard, PostgresGuard, PostgresRowGuard, RedisGuard } = fence;
