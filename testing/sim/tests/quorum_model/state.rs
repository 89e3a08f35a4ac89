//! The state of a search: small, copied as a whole, and the same for nodes that trade places.

use leasehold_core::quorum::Trust;

/// A token or a counter.
pub(crate) type Count = u8;

/// Names a loss of memory of one node; 0 is none.
pub(crate) type Name = u8;

/// One attempt of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct By {
    pub(crate) client: u8,
    pub(crate) attempt: u8,
}

/// A record, by the send that wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lease {
    pub(crate) by: By,
    pub(crate) seq: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Mark {
    Absent,
    Member,
    Joining,
    Rejoined,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Node {
    pub(crate) counter: Count,
    pub(crate) lease: Option<Lease>,
    pub(crate) mark: Mark,
    /// The last name given to a loss here, even if the marker is lost.
    pub(crate) stamp: Name,
    /// The resource's trust entry.
    pub(crate) entry: Name,
    /// The lease that it forgot, as long as its holder may still believe in it.
    pub(crate) past: Option<Lease>,
    /// A request of an attempt, or of a send, that its client has given up.
    pub(crate) stray: Option<(By, Ask)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ask {
    pub(crate) seq: u8,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum What {
    Acquire {
        floor: Count,
        waited_out: Name,
        birth: bool,
        /// The name of a loss that it may be the first to find; 0 for one that was never used.
        fresh: Name,
        /// Sent by a holder.
        repair: bool,
    },
    Raise(Count),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Reply {
    Granted {
        counter: Count,
        trust: Trust,
        stamp: Name,
        seq: u8,
    },
    /// Not ours, or not any more; a node in doubt shows no counter, and nor does one without a record.
    Conflict(Option<Count>),
    Abstains(Name),
    Raised(Count),
}

/// A client's knowledge of one node in this attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Told {
    Nothing,
    Granted {
        counter: Count,
        trust: Trust,
        seq: u8,
    },
    Raised {
        counter: Count,
        seq: u8,
    },
    Refused(Option<(Count, Trust)>),
    /// Under a stamp that was shown before this attempt began, or not.
    Abstained {
        shown_before: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Wire {
    Idle,
    Asks(Ask),
    Answers(Reply),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Leg {
    pub(crate) told: Told,
    pub(crate) wire: Wire,
    pub(crate) seq: u8,
    /// The loss whose abstention was over when the attempt began.
    pub(crate) knew: Name,
    /// The loss whose abstention is over, as the client knows now.
    pub(crate) known: Name,
    /// The loss that the node showed last.
    pub(crate) shown: Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Phase {
    Idle,
    Asking,
    Lost,
    Held(Count),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Client<const N: usize> {
    pub(crate) phase: Phase,
    pub(crate) attempt: u8,
    /// The highest token granted when this attempt began, where that matters.
    pub(crate) above: Count,
    /// A token settled on for good; only a mistake does that.
    pub(crate) fixed: Count,
    /// All nodes were joining at one instant.
    pub(crate) unborn: bool,
    pub(crate) legs: [Leg; N],
}

/// A broken promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Broken {
    /// A token was granted twice.
    Repeated,
    /// A grant got a smaller token than one before it.
    Fallen,
    /// A grant while q nodes vouched for another.
    TwoHolders,
}

/// The faults that are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Budget {
    /// Requests that are sent again, or given up, without an answer.
    pub(crate) timeouts: u8,
    /// Requests that are given up and land later.
    pub(crate) strays: u8,
    /// Nodes that lose their data.
    pub(crate) losses: u8,
    /// Nodes that a holder asks again.
    pub(crate) repairs: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct State<const N: usize, const C: usize> {
    pub(crate) nodes: [Node; N],
    pub(crate) clients: [Client<N>; C],
    pub(crate) left: Budget,
    /// One bit for every token that was granted, or only the highest where only the order of grants matters.
    pub(crate) granted: u64,
    pub(crate) broken: Option<Broken>,
}

impl<const N: usize> Client<N> {
    pub(crate) fn by(&self, client: usize) -> By {
        By { client: client as u8, attempt: self.attempt }
    }
}

impl<const N: usize, const C: usize> State<N, C> {
    pub(crate) fn highest(&self) -> Count {
        63_u32.saturating_sub(self.granted.leading_zeros()) as Count
    }

    /// True if the node holds the record of this leg, or has forgotten it and does not vote yet.
    pub(crate) fn vouches(&self, client: usize, node: usize) -> bool {
        let of = &self.clients[client];
        let (Told::Granted { seq, .. } | Told::Raised { seq, .. }) = of.legs[node].told else { return false };
        let lease = Some(Lease { by: of.by(client), seq });
        self.nodes[node].lease == lease || self.nodes[node].past == lease
    }

    pub(crate) fn vouching(&self, client: usize) -> usize {
        (0..N).filter(|node| self.vouches(client, *node)).count()
    }

    /// True if the end of this record can show before anything else happens to the node.
    pub(crate) fn shows(&self, node: usize, lease: Lease) -> bool {
        let of = &self.clients[usize::from(lease.by.client)];
        let counted = of.phase == Phase::Asking && of.attempt == lease.by.attempt;
        let asked = |client: &Client<N>| matches!(client.legs[node].wire, Wire::Asks(_));
        counted || self.nodes[node].stray.is_some() || self.clients.iter().any(asked)
    }

    /// Lowers all tokens and counters by what they have in common.
    pub(crate) fn lowered(mut self) -> Self {
        let mut base = Count::MAX;
        self.counts(|count| base = base.min(*count));
        // A grant below all of them stays below all of them.
        base = base.saturating_sub(1);
        let highest = self.highest();
        self.counts(|count| *count -= base);
        self.granted = 1 << highest.saturating_sub(base);
        self
    }

    fn counts(&mut self, mut on: impl FnMut(&mut Count)) {
        for node in &mut self.nodes {
            on(&mut node.counter);
            if let Some((_, Ask { what: What::Raise(to), .. })) = &mut node.stray {
                on(to);
            }
        }
        for client in &mut self.clients {
            let asks = client.phase == Phase::Asking;
            for leg in &mut client.legs {
                if let (true, Told::Granted { counter, .. } | Told::Raised { counter, .. }) = (asks, &mut leg.told) {
                    on(counter);
                }
                match &mut leg.wire {
                    Wire::Asks(Ask { what: What::Raise(to), .. }) => on(to),
                    Wire::Answers(
                        Reply::Granted { counter, .. } | Reply::Conflict(Some(counter)) | Reply::Raised(counter),
                    ) => on(counter),
                    Wire::Idle | Wire::Asks(_) | Wire::Answers(Reply::Abstains(_) | Reply::Conflict(None)) => {}
                }
            }
        }
    }

    /// The same state with nodes, and clients if they are alike, in a canonical order.
    pub(crate) fn sorted(self, clients_alike: bool) -> Self {
        let mut least = self.nodes_sorted();
        if clients_alike {
            for order in orders::<C>() {
                least = least.min(self.renamed(order).nodes_sorted());
            }
        }
        least
    }

    fn nodes_sorted(mut self) -> Self {
        // Insertion sort of columns: all that is known of a node moves with it.
        for at in 1..N {
            for lower in (0..at).rev() {
                if self.column(lower) <= self.column(lower + 1) {
                    break;
                }
                self.nodes.swap(lower, lower + 1);
                for client in &mut self.clients {
                    client.legs.swap(lower, lower + 1);
                }
            }
        }
        self
    }

    fn column(&self, node: usize) -> (Node, [Leg; C]) {
        (self.nodes[node], std::array::from_fn(|client| self.clients[client].legs[node]))
    }

    fn renamed(mut self, order: [usize; C]) -> Self {
        let clients = self.clients;
        for (to, from) in order.into_iter().enumerate() {
            self.clients[to] = clients[from];
        }
        let place = |by: &mut By| {
            if by.attempt == 0 {
                return;
            }
            by.client = order.iter().position(|from| *from == usize::from(by.client)).expect("a client") as u8;
        };
        for node in &mut self.nodes {
            for lease in [&mut node.lease, &mut node.past].into_iter().flatten() {
                place(&mut lease.by);
            }
            if let Some((by, _)) = &mut node.stray {
                place(by);
            }
        }
        self
    }
}

/// All orders but the given one.
fn orders<const C: usize>() -> impl Iterator<Item = [usize; C]> {
    const THREE: [[usize; 3]; 5] = [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    const TWO: [[usize; 2]; 1] = [[1, 0]];
    let all: &[&[usize]] = match C {
        2 => &[&TWO[0]],
        3 => &[&THREE[0], &THREE[1], &THREE[2], &THREE[3], &THREE[4]],
        _ => &[],
    };
    all.iter().map(|order| std::array::from_fn(|at| order[at])).collect::<Vec<_>>().into_iter()
}
