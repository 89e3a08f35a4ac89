/** Waits until a signal is aborted, and keeps the process alive meanwhile: a lease does not. */
export async function aborted(signal) {
  const alive = setInterval(() => {}, 60_000);
  try {
    await new Promise((resolve) => {
      signal.addEventListener("abort", resolve, { once: true });
      if (signal.aborted) resolve();
    });
  } finally {
    clearInterval(alive);
  }
}
