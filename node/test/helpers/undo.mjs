const undos = new WeakMap();

/** Runs with the end of the test, the last one first: clients go before the servers that they talk to. */
export function undo(t, action) {
  if (!undos.has(t)) {
    const actions = [];
    undos.set(t, actions);
    t.after(async () => {
      for (const action of actions.reverse()) await action();
    });
  }
  undos.get(t).push(action);
}
