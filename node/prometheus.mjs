import prom from "prom-client";
import prometheus from "./lib/prometheus.cjs";

export const { collect } = prometheus.adapter(prom);
