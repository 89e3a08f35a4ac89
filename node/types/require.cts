import leasehold = require("leasehold");
import fence = require("leasehold/fence");

export async function use(): Promise<number> {
  const client: leasehold.Client = await leasehold.connect("memory:");
  new fence.Guards(1).claim("a", 1);
  return client.using("a", (lease) => lease.token);
}
