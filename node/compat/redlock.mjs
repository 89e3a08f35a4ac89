import redlock from "./redlock.cjs";

export const { Redlock, Lock, ExecutionError, ResourceLockedError } = redlock;
export default Redlock;
