// A Nest application with a job at each second whose work is done once of all processes: store, file that records what happens.
// The first process that does it stays in its middle until it is killed.

import "reflect-metadata";
import { appendFileSync, readFileSync } from "node:fs";
import { Injectable, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { Cron, ScheduleModule } from "@nestjs/schedule";
import { Client } from "leasehold";
import { LeaseholdModule, Once, currentRun } from "leasehold/nestjs";

const [url = "", file = ""] = process.argv.slice(2);

@Injectable()
class Reports {
  constructor(readonly locks: Client) {}

  @Cron("* * * * * *")
  async tick(): Promise<void> {
    await this.above("yearly");
    await this.below();
  }

  @Once((which: string) => `report-${which}`, { key: (which) => which, ttl: 1_000, wait: 60_000 })
  async above(which: string): Promise<string | undefined> {
    const isFirst = !readFileSync(file, "utf8").includes("begun");
    this.say(isFirst ? "begun" : "done", which);
    if (isFirst) await new Promise(() => {});
    return which;
  }

  @Once("below", { every: 1_000, offset: 500 })
  @Cron("* * * * * *")
  async below(): Promise<void> {
    this.say("below", currentRun()?.resource);
  }

  say(what: string, which: string | undefined): void {
    appendFileSync(file, `${what} ${which} ${process.pid} ${currentRun()?.token}\n`);
  }
}

@Module({
  imports: [ScheduleModule.forRoot(), LeaseholdModule.forRoot(url, { requestTimeout: 10_000 })],
  providers: [Reports],
})
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
if (app.get(Reports).locks !== app.get(Client)) throw new Error("all get the same client");
process.stdin.resume().on("end", async () => {
  await app.close();
  process.exit();
});
