export * from "./nestjs.js";
