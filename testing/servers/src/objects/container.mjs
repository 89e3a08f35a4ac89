// Makes a container on Azurite, with the key that everybody knows. Arguments: port, container.
import { createHmac } from "node:crypto";

const [port, name] = process.argv.slice(2);
const account = "devstoreaccount1";
const key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const headers = { "x-ms-date": new Date().toUTCString(), "x-ms-version": "2021-12-02" };
const lines = Object.entries(headers).map(([header, value]) => `${header}:${value}`);
const signed = ["PUT", ...Array(11).fill(""), ...lines, `/${account}/${account}/${name}`, "restype:container"].join("\n");
const signature = createHmac("sha256", Buffer.from(key, "base64")).update(signed, "utf8").digest("base64");
const response = await fetch(`http://127.0.0.1:${port}/${account}/${name}?restype=container`, {
  method: "PUT",
  headers: { ...headers, authorization: `SharedKey ${account}:${signature}` },
});
if (response.status !== 201) throw new Error(`${response.status} ${await response.text()}`);
