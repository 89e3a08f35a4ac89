const undos = new WeakMap();

/** Runs at the end of the test, the last one first: clients before their servers. */
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
