// Stories that can be clicked through. A step acts when it begins, and is over when what it waits for has happened; the
// times in between are the component's.

const record = (world, index) => world.nodes[index].node.record;
const holds = (name) => (world) => world.worker(name).phase === "held";
const isReady = (name) => (world) => world.worker(name).phase === "held" && world.worker(name).work === "ready";
const wroteOnce = (name) => (world) =>
  world.resource.entries.some(({ what, worker }) => what === "write" && worker === world.worker(name).index);
const requestsOf = (world, name) => world.worker(name).place;

export const SCENARIOS = [
  {
    id: "pause",
    title: "The pause",
    canReplay: true,
    why: [
      "A worker that stands still cannot know that its lease runs out meanwhile, so the first thing it does when it wakes up may be a write that it has no right to.",
      "No lock can prevent that; only the resource can, by refusing every token that is older than the newest it has seen.",
    ],
    workers: 2,
    steps: [
      {
        say: "A asks for the lock, gets a token, and writes.",
        act: (world) => world.worker("A").ask(),
        until: (world) => wroteOnce("A")(world) && isReady("A")(world),
      },
      {
        say: "Between a check and the next write, A stands still. B asks, and has to wait.",
        act: (world) => {
          world.worker("A").pause();
          world.worker("B").ask();
        },
        until: (world) => world.worker("B").phase === "waiting",
      },
      {
        say: "A's lease runs out, though A cannot see it. B gets the lock, with a higher token, and writes.",
        until: wroteOnce("B"),
      },
      {
        say: "A wakes up and does what it was about to do: it writes.",
        act: (world) => world.worker("A").wake(),
        until: (world) => world.resource.entries.at(-1)?.worker === 0 && world.worker("A").phase === "lost",
      },
    ],
    end: (world) =>
      world.resource.lostUpdates > 0
        ? "Without a guard the old write went through, and B's work was overwritten."
        : "The guard refused A's write, and B's work is safe.",
  },
  {
    id: "reply",
    title: "The lost reply",
    why: [
      "The store has granted the lock, but the answer is lost, and who takes silence for a no now waits for a lock that is held in its own name.",
      "Every attempt has a name that nobody else knows, and the store keeps it in the record, so a repeated request recognises its own grant.",
    ],
    workers: 2,
    steps: [
      {
        say: "A asks, and the store writes A's record. The reply is lost.",
        act: (world) => {
          const rule = ({ isReply, to }) => (isReply && to === requestsOf(world, "A") ? { lose: true } : undefined);
          world.network.rule = rule;
          world.worker("A").ask();
        },
        until: (world) =>
          record(world, 0) !== undefined && world.network.shown.some(({ isReply, lostNs }) => isReply && lostNs),
      },
      {
        say: "A does not know what became of its request. When no answer can be expected any more, it asks again, under the same name.",
        act: (world) => {
          world.network.rule = () => undefined;
        },
        until: (world) => world.network.shown.some(({ isReply, kind }) => !isReply && kind === "acquire"),
        settlesMs: 100,
      },
      {
        say: "The record bears A's own name, so the lock is A's, with the token that was minted the first time.",
        until: holds("A"),
      },
      { say: "A does its work.", until: (world) => wroteOnce("A")(world) && isReady("A")(world) },
      {
        say: "A gives the lock back.",
        act: (world) => world.worker("A").release(),
        until: (world) => world.worker("A").phase === "idle",
      },
      {
        say: "B asks, and has it at once, with a higher token.",
        act: (world) => world.worker("B").ask(),
        until: holds("B"),
      },
    ],
    end: (world) => {
      const [[{ fromNs }]] = world.witness.spans;
      const [after, ttl] = [(fromNs / 1e9).toFixed(1), world.ttlMs / 1_000];
      const otherwise = `Had it taken the silence for a no, its own record would have stood in everybody's way for ${ttl} s.`;
      return `A had the lock after ${after} s. ${otherwise}`;
    },
  },
  {
    id: "split",
    title: "The split vote",
    store: "quorum",
    // One with which chance lets them collide twice, and a counter has to be raised.
    seed: 21,
    why: [
      "Three workers ask five nodes at the same moment, each is the first at some of them, and nobody has the three that make a majority.",
      "Each gives back what it got and tries again after a random pause; nodes that count behind are raised first, so that a majority shows exactly the token that is granted.",
    ],
    workers: 3,
    steps: [
      {
        say: "A, B and C ask all five nodes at once. Each is near to some of them.",
        act: (world) => {
          // Whom each node hears first.
          const nearest = ["A", "A", "B", "B", "C"];
          world.network.rule = ({ kind, isReply, from, to }) => {
            if (kind !== "acquire" || isReply) return undefined;
            const isNear = world.nodes.some(
              ({ place, index }) => place === to && requestsOf(world, nearest[index]) === from,
            );
            return { latencyMs: world.network.latencyMs * (isNear ? 0.75 : 1.2) };
          };
          for (const worker of world.workers) worker.ask();
        },
        until: (world) => world.nodes.every(({ index }) => record(world, index) !== undefined),
      },
      {
        say: "Two nodes for A, two for B, one for C: no majority. All of them give back what they got.",
        until: (world) => world.network.replies.release >= world.nodes.length,
        settlesMs: 0,
      },
      {
        say: "They try again, each after a pause of its own, until one has a majority. Nodes whose counter is behind are raised to its token.",
        act: (world) => {
          world.network.rule = () => undefined;
        },
        until: (world) => world.workers.some(({ phase }) => phase === "held"),
      },
      {
        say: "The others wait until it is their turn.",
        until: (world) => world.resource.entries.some(({ what }) => what === "write"),
      },
    ],
    end: (world) => `One majority, one holder, one token: ${world.resource.mark}.`,
  },
  {
    id: "amnesia",
    title: "The amnesiac node",
    store: "quorum",
    why: [
      "A node that lost its data has forgotten for whom it voted, and if it voted again at once, a second worker could have a majority while the first one still holds the lock.",
      "So it abstains until whatever it may have forgotten is over by any clock, and holders do not need it meanwhile.",
    ],
    workers: 2,
    steps: [
      {
        say: "Nodes 4 and 5 are down. A is granted the lock by 1, 2 and 3: a majority.",
        act: (world) => {
          world.kill(world.nodes[3]);
          world.kill(world.nodes[4]);
          world.worker("A").ask();
        },
        until: isReady("A"),
      },
      {
        say: "A is cut off. Nodes 4 and 5 come back, and node 3 loses its data, with its vote for A. B asks.",
        act: (world) => {
          world.worker("A").cut();
          world.revive(world.nodes[3]);
          world.revive(world.nodes[4]);
          world.wipe(world.nodes[2]);
          world.worker("B").ask();
        },
        until: (world) => world.network.shown.some(({ tone }) => tone === "abstains"),
      },
      {
        say: "4 and 5 say yes, 1 and 2 say no, and 3 abstains: B has no majority, and A's lease stays the only one.",
        until: (world) => world.worker("A").phase === "lost",
      },
      {
        say: "A's lease is over, and A knows it by its own clock. Now B gets a majority without node 3.",
        until: holds("B"),
      },
      {
        say: "B renews, and keeps asking node 3. Once whatever it forgot must be over, it votes again.",
        act: (world) => world.worker("A").mend(),
        until: (world) => world.nodes[2].node.marker?.phase === "rejoined" && world.nodes[2].node.trusted !== undefined,
        atMostTtls: 4,
      },
    ],
    end: () =>
      "There never was a second majority. Node 3's counter was raised before its vote counted, so tokens still only grow.",
  },
  {
    id: "run",
    title: "The nightly run",
    store: "single",
    isRun: true,
    canReplay: true,
    why: [
      "A lock keeps two workers apart while both are at work, and forgets all of it when the first one leaves, so a worker that comes an hour late does the same job again.",
      "A run is a lock whose success is written down in the step that frees it, and while that completion stands the store turns away everybody who asks for the same run.",
    ],
    workers: 3,
    steps: [
      {
        say: "A asks for tonight's run, gets it, and begins to write the report.",
        act: (world) => world.worker("A").ask(),
        until: (world) => wroteOnce("A")(world) && isReady("A")(world),
      },
      {
        say: "In the middle of it A stands still. B asks for the run as well, and waits.",
        act: (world) => {
          world.worker("A").pause();
          world.worker("B").ask();
        },
        until: (world) => world.worker("B").phase === "waiting",
      },
      {
        say: "A's lease runs out, and no completion says that the work is done. So B does it.",
        until: (world) => wroteOnce("B")(world) && isReady("B")(world),
      },
      {
        say: "B finishes. One step in the store writes the completion and frees the lock.",
        act: (world) => world.worker("B").finish(),
        until: (world) => world.worker("B").phase === "done",
      },
      {
        say: "A wakes up and goes on writing, with a token that is too old. It learns that the run is no longer its own.",
        act: (world) => world.worker("A").wake(),
        until: (world) => world.resource.entries.at(-1)?.worker === 0 && world.worker("A").phase === "lost",
      },
      {
        say: "C comes late, with the same run in mind. The completion says that it is done.",
        act: (world) => world.worker("C").ask(),
        until: (world) => world.worker("C").phase === "done",
      },
    ],
    end: (world) =>
      world.resource.lostUpdates > 0
        ? "The completion turned C away, but without a guard A's late write went through and spoiled the report."
        : "The run was done once: B's completion turned C away, and the guard refused what A wrote too late. With a lock alone, C would have done the job again.",
  },
  {
    id: "turn",
    title: "The hand-over",
    store: "queue",
    why: [
      "Waiters that ask again and again find a free lock late, and the one that happens to ask first gets it, so some wait for ever.",
      "A store with a queue keeps a free lock for the first who waits and tells that one alone, and a turn that nobody takes passes on to the next.",
    ],
    workers: 3,
    steps: [
      {
        say: "A asks and gets the lock.",
        act: (world) => world.worker("A").ask(),
        until: holds("A"),
      },
      {
        say: "B asks, and a little later C. Each gets a place in the queue.",
        act: (world) => {
          world.worker("B").ask();
          world.after(400e6, () => world.worker("C").ask());
        },
        until: (world) => world.nodes[0].queue.tickets().length === 2,
      },
      {
        say: "A gives the lock back. The store tells B, who came first, and B asks at once.",
        act: (world) => world.worker("A").release(),
        until: holds("B"),
      },
      {
        say: "A asks again, and stands behind C. Then C stands still.",
        act: (world) => {
          world.worker("A").ask();
          world.worker("C").pause();
        },
        until: (world) => world.worker("A").phase === "waiting" && world.nodes[0].queue.tickets().length === 2,
      },
      {
        say: "B gives the lock back. C does not take its turn, so after three seconds it passes on to A.",
        act: (world) => world.worker("B").release(),
        until: holds("A"),
      },
    ],
    end: () =>
      "The queue told one waiter at a time, in the order in which they came. It grants nothing by itself, so a waiter that is gone costs some time, and never the promise of one holder.",
  },
  {
    id: "free",
    title: "Free play",
    why: [
      "Three workers ask, work and rest as chance will have it; stop them, cut them off, take the store down or wipe it, and make the network slow and lossy.",
      "Somebody who sees the true time watches all of it, and says so should two workers ever hold the lock at once.",
    ],
    workers: 3,
    isBusy: true,
    steps: [],
  },
];

export const scenarioOf = (id) => SCENARIOS.find((scenario) => scenario.id === id);
