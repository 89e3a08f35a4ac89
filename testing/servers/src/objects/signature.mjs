// Prints a shared access signature for Azurite, with the key that everybody knows. Arguments: permissions, such as rw.
import { createHmac } from "node:crypto";

const [permissions] = process.argv.slice(2);
const account = "devstoreaccount1";
const key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const fields = { sp: permissions, ss: "b", srt: "co", st: "", se: "2100-01-01T00:00:00Z", sip: "", spr: "https,http", sv: "2021-12-02" };
const signed = [account, ...Object.values(fields), "", ""].join("\n");
const sig = createHmac("sha256", Buffer.from(key, "base64")).update(signed, "utf8").digest("base64");
console.log(`?${new URLSearchParams(Object.entries({ ...fields, sig }).filter(([, value]) => value !== ""))}`);
