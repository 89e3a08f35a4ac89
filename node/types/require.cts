import leasehold = require("leasehold");
import redlock = require("leasehold/compat/redlock");
import fence = require("leasehold/fence");

export async function use(): Promise<number> {
  const client: leasehold.Client = await leasehold.connect("memory:");
  await new redlock.default(["redis://a"]).quit();
  new fence.Guards(1).claim("a", 1);
  return client.using("a", (lease) => lease.token);
}
