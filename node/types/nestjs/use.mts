// Valid and invalid uses of the adapters in strict TypeScript. Only compiled, never run.

import cron, { type TaskContext } from "node-cron";
import { type Client, type Run } from "leasehold";
import { LeaseholdModule, Once, currentRun } from "leasehold/nestjs";
import { RunCoordinator } from "leasehold/node-cron";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(..._: Same<A, B> extends true ? [] : ["the types differ"]): void {}

export function scheduled(client: Client): void {
  const coordinator = new RunCoordinator(client, { keep: 86_400_000 });
  cron.setRunCoordinator(coordinator);
  const report = coordinator.job(async (context: TaskContext, run) => {
    same<typeof run, Run | undefined>();
    return context.date;
  });
  cron.schedule("0 2 * * *", report, { name: "report", distributed: true, runCoordinator: coordinator });
  cron.schedule("0 2 * * *", coordinator.job(({ date }) => same<typeof date, Date>()));
  new RunCoordinator(client, { maxAttempts: 2 });
  // @ts-expect-error: the schedule names the runs
  new RunCoordinator(client, { key: "s" });
  // @ts-expect-error: each time of the schedule is another run
  new RunCoordinator(client, { maxAttempts: 2, retryAfter: 60_000 });
}

export class Invoices {
  @Once("mail", { key: (id: string) => id })
  async mail(id: string): Promise<void> {
    same<ReturnType<typeof currentRun>, Run | null>();
    void id;
  }

  @Once((id: number) => `charge-${id}`, { cooldown: 60_000, maxAttempts: 3, retryAfter: 1_000 })
  async charge(id: number): Promise<string | undefined> {
    return String(id);
  }

  @Once("receipt", { key: "1", saveResult: true })
  async receipt(): Promise<{ number: string } | undefined> {
    return { number: "2026-1" };
  }

  // @ts-expect-error: the result may be missing, also where it is saved
  @Once("total", { every: 60_000, saveResult: true })
  async total(): Promise<number> {
    return 1;
  }

  // @ts-expect-error: the result may be missing
  @Once("sum", { every: 60_000 })
  async sum(): Promise<number> {
    return 1;
  }

  // @ts-expect-error: a run is awaited
  @Once("now", { every: 60_000 })
  now(): void {}

  // @ts-expect-error: nothing says when the work is to be done again
  @Once("vague", { wait: 5 })
  async vague(): Promise<void> {}

  // @ts-expect-error: the key is made of the arguments
  @Once("other", { key: (id: number) => String(id) })
  async other(id: string): Promise<void> {
    void id;
  }
}

export const modules = [LeaseholdModule.forRoot(), LeaseholdModule.forRoot(["redis://a"], { maxTtl: 60_000 })];
