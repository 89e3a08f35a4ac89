// What only Unix has.

const windows = process.platform === "win32";

/** Options of a test that stops a process for a while. */
export const STOPS = { skip: windows && "Windows has no SIGSTOP" };
/** Options of a test of the command. */
export const COMMAND = { skip: windows && "the command runs on Unix only" };
/** Options of a test that deletes a file soon after its client. */
export const DELETES = { skip: windows && "Windows deletes no open file" };
