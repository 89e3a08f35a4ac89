import * as common from "@nestjs/common";
import nest from "./lib/nest.cjs";

export const { LeaseholdModule, Once, currentRun } = nest.adapter(common);
