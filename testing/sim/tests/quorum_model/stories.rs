//! The beginnings of searches that would otherwise take too long to get there.
//!
//! A search from the end of a story finds a mistake only if the rule in question is broken, so each story is searched
//! twice: with the rule, and without.

use crate::bounds::{CALM, setting};
use crate::state::Budget;
use crate::world::{Action, Setting};

const A: usize = 0;
const B: usize = 1;

struct Story(Vec<Action>);

impl Story {
    fn new() -> Self {
        Self(Vec::new())
    }

    fn then(mut self, actions: impl IntoIterator<Item = Action>) -> Self {
        self.0.extend(actions);
        self
    }

    fn starts(self, client: usize) -> Self {
        self.then([Action::Start { client, stray: None }])
    }

    fn starts_again(self, client: usize, node: usize) -> Self {
        self.then([Action::Start { client, stray: Some(node) }])
    }

    fn arrives(self, client: usize, nodes: &[usize]) -> Self {
        self.then(nodes.iter().map(|node| Action::Arrive { client, node: *node }))
    }

    fn hears(self, client: usize, nodes: &[usize]) -> Self {
        self.then(nodes.iter().map(|node| Action::Hear { client, node: *node }))
    }

    /// B has heard of a loss of node 0, waits it out and makes it vote. A is granted by nodes 0 and 1, and node 0 loses
    /// its data again.
    fn node_0_forgets_twice(self) -> Self {
        self.asks(B, &[0])
            .starts(A)
            .asks(A, &[1, 2, 0])
            .asks(B, &[1])
            .waits_out(B, &[0])
            .starts(B)
            .run_out(&[1, 2])
            .asks(B, &[0, 1, 2])
            .waits_out(A, &[0])
            .starts(A)
            .run_out(&[0, 1])
            .asks(A, &[0, 1, 2])
            .asks(A, &[0])
            .lose_data(&[0])
    }

    /// There and back.
    fn asks(self, client: usize, nodes: &[usize]) -> Self {
        self.arrives(client, nodes).hears(client, nodes)
    }

    fn waits_out(self, client: usize, nodes: &[usize]) -> Self {
        self.then(nodes.iter().map(|node| Action::WaitOut { client, node: *node }))
    }

    fn run_out(self, nodes: &[usize]) -> Self {
        self.then(nodes.iter().map(|node| Action::RunOut { node: *node }))
    }

    fn lose_data(self, nodes: &[usize]) -> Self {
        self.then(nodes.iter().map(|node| Action::LoseData { node: *node }))
    }

    fn setting(self, counters: &[u8], attempts: [u8; 2], budget: Budget) -> Setting {
        Setting {
            story: self.0,
            counters: counters.to_vec(),
            attempts: attempts.to_vec(),
            ..setting(counters.len(), 2, 0, budget)
        }
    }
}

/// A was granted 4 by nodes 0 and 2, which is high up at node 2 only. Then node 0 lost its data.
pub(crate) fn loss_after_a_grant() -> Setting {
    let story = Story::new().starts(A).asks(A, &[0, 2]).asks(A, &[0]).lose_data(&[0]);
    story.setting(&[0, 0, 3], [1, 2], Budget { losses: 1, ..CALM })
}

/// Node 0 answered A the highest counter, and A is about to raise the others, when node 0 loses its data.
pub(crate) fn loss_before_a_grant() -> Setting {
    let story = Story::new().starts(A).asks(A, &[0, 1, 2]).lose_data(&[0]);
    story.setting(&[3, 0, 0], [1, 2], Budget { losses: 1, ..CALM })
}

/// B has read the counter of node 1 before A raised it and was granted. Then node 0 lost its data, and A asks again.
pub(crate) fn read_before_a_grant() -> Setting {
    let story = Story::new().starts(A).asks(A, &[0, 1]).starts(B).asks(B, &[1]).asks(A, &[1]).lose_data(&[0]);
    story.setting(&[3, 0, 0], [3, 1], Budget { losses: 1, ..CALM })
}

/// B holds nodes 1 and 2 and asks node 0 again, which takes long: A is granted a higher token by 0 and 1 meanwhile,
/// node 0 loses its data, and B, which has waited that out, makes it vote.
pub(crate) fn delayed_repair() -> Setting {
    let story = Story::new()
        .starts(B)
        .then([Action::GiveUpOn { client: B, node: 0 }])
        .asks(B, &[1, 2])
        .then([Action::Repair { client: B, node: 0 }])
        .starts(A)
        .run_out(&[1])
        .asks(A, &[0, 1])
        .lose_data(&[0])
        .starts_again(B, 0)
        .asks(B, &[0, 1])
        .waits_out(B, &[0])
        .starts(B)
        .asks(B, &[0, 1]);
    let budget = Budget { timeouts: 1, strays: 1, losses: 1, repairs: 1 };
    Setting { floors: vec![6, 0], ..story.setting(&[0, 0, 0], [1, 4], budget) }
}

/// Node 0 answered A the highest counter and lost its data. The others granted B, which has waited out that loss since,
/// so it may ask node 0 again.
pub(crate) fn informed_repair() -> Setting {
    let story = Story::new().starts(A).asks(A, &[0]).lose_data(&[0]).starts(B).asks(B, &[0, 1, 2]).waits_out(B, &[0]);
    story.setting(&[3, 0, 0], [2, 2], Budget { losses: 1, repairs: 1, strays: 1, ..CALM })
}

/// All nodes are new. A has seen them all join twice, and has waited that out.
pub(crate) fn unborn() -> Setting {
    let all = &[0, 1, 2];
    let story = Story::new().starts(A).asks(A, all).starts(A).asks(A, all).waits_out(A, all);
    Setting { born: false, ..story.setting(&[0, 0, 0], [3, 2], CALM) }
}

/// All nodes were new; A made them vote one after the other, and was granted by all. B has seen them join, and knows
/// that the wait for node 0 is over. Then nodes 1 and 2 lost their data.
pub(crate) fn births_and_losses() -> Setting {
    let story = Story::new()
        .starts(B)
        .asks(B, &[0, 1, 2])
        .starts(A)
        .asks(A, &[0, 1, 2])
        .waits_out(A, &[0, 1])
        .waits_out(B, &[0])
        .starts(A)
        .asks(A, &[0, 1, 2])
        .waits_out(A, &[2])
        .starts(A)
        .run_out(&[0, 1])
        .asks(A, &[0, 1, 2])
        .asks(A, &[0, 1, 2])
        .lose_data(&[1, 2]);
    Setting { born: false, ..story.setting(&[0, 0, 0], [3, 3], Budget { losses: 2, ..CALM }) }
}

/// B's first attempt was sent to node 0 twice: the later send found that the node had lost its data, the first is still
/// under way. B waited and made node 0 vote, A was granted by nodes 0 and 1, and node 0 lost its data again.
pub(crate) fn second_loss_and_a_stray() -> Setting {
    let story = Story::new()
        .lose_data(&[0])
        .starts(B)
        .then([Action::Resend { client: B, node: 0, stray: true }])
        .node_0_forgets_twice();
    story.setting(&[0, 0, 0], [2, 3], Budget { losses: 2, strays: 1, timeouts: 1, ..CALM })
}

/// B has waited out a loss of node 0 and made it vote, nodes 0 and 1 granted A, and node 0 lost its data again. B has
/// asked it once more since, and asks again.
pub(crate) fn second_loss() -> Setting {
    let story = Story::new()
        .lose_data(&[0])
        .starts(B)
        .node_0_forgets_twice()
        .starts(B)
        .asks(B, &[0, 1])
        .starts(B)
        .asks(B, &[0, 1])
        .starts(B);
    story.setting(&[0, 0, 0], [2, 5], Budget { losses: 2, ..CALM })
}

/// A was granted 4 by nodes 0, 1 and 2 of five. Then 0 and 1 lost their data, which B has waited out.
fn two_lost_of_five() -> Story {
    Story::new()
        .starts(A)
        .asks(A, &[0, 1, 2])
        .asks(A, &[0, 1])
        .lose_data(&[0, 1])
        .starts(B)
        .asks(B, &[0, 1, 2])
        .waits_out(B, &[0, 1])
}

fn of_five(story: Story) -> Setting {
    story.setting(&[0, 0, 3, 0, 0], [1, 2], Budget { losses: 2, ..CALM })
}

pub(crate) fn two_losses_of_five() -> Setting {
    of_five(two_lost_of_five())
}

/// And then B was answered by all of them, so that those in doubt may count.
pub(crate) fn doubtful_majority_of_five() -> Setting {
    of_five(two_lost_of_five().starts(B).asks(B, &[0, 1, 2, 3, 4]))
}
