//! Running a search, and telling what it found.

use std::sync::atomic::Ordering;
use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model};

use crate::state::{Broken, Client, Node, State, Told, Wire};
use crate::world::{ALL_REACHED, Setting, World};

/// The result of a search.
pub(crate) struct Found {
    pub(crate) states: usize,
    pub(crate) unique: usize,
    pub(crate) counts: [u64; ALL_REACHED.len()],
    pub(crate) broken: Option<Broken>,
}

/// Looks at every state within the bounds, breadth first, until something is broken.
pub(crate) fn search<const N: usize, const C: usize>(name: &str, setting: Setting) -> Found {
    let began = Instant::now();
    let limit = setting.limit;
    let checker = World::<N, C>::new(setting)
        .checker()
        .finish_when(HasDiscoveries::AnyFailures)
        .target_state_count(limit)
        .spawn_bfs()
        .join();
    let counts = std::array::from_fn(|at| checker.model().reached[at].load(Ordering::Relaxed));
    let unique = checker.unique_state_count();
    let (states, depth, took) = (checker.state_count(), checker.max_depth(), began.elapsed());
    let all = if states < limit { "all" } else { "bounded" };
    println!("{name}: {all}, {states} states, {unique} unique, depth {depth}, {took:.1?}");
    let reached: Vec<_> = ALL_REACHED.iter().zip(counts).map(|(what, count)| format!("{what:?} {count}")).collect();
    println!("  {}", reached.join(", "));
    let broken = checker.discoveries().into_values().next().map(|path| {
        let steps = path.into_vec();
        for (state, action) in &steps {
            println!("    {}", show(state));
            if let Some(action) = action {
                println!("  {action:?}");
            }
        }
        steps.last().and_then(|(state, _)| state.broken).expect("the path ends where it broke")
    });
    if let Some(broken) = broken {
        println!("  {broken:?}");
    }
    Found { states, unique, counts, broken }
}

fn show<const N: usize, const C: usize>(state: &State<N, C>) -> String {
    let node = |node: &Node| {
        let lease = |lease: Option<crate::state::Lease>| match lease {
            Some(lease) => format!("{}.{}", name(usize::from(lease.by.client)), lease.by.attempt),
            None => "-".into(),
        };
        let mark = format!("{:?}", node.mark);
        let past = if node.past.is_some() { format!(" past {}", lease(node.past)) } else { String::new() };
        let entry = if node.entry != 0 { " entry" } else { "" };
        format!("[{} {} {}{entry}{past}]", node.counter, lease(node.lease), &mark[..3])
    };
    let client = |(at, client): (usize, &Client<N>)| {
        let legs = client.legs.iter().map(|leg| {
            let told = match leg.told {
                Told::Nothing => "?".into(),
                Told::Granted { counter, trust, .. } => format!("{counter}{}", &format!("{trust:?}")[..1]),
                Told::Raised { counter, .. } => format!("{counter}R"),
                Told::Refused(read) => read.map_or("no".into(), |(counter, _)| format!("no({counter})")),
                Told::Abstained { .. } => "abstains".into(),
            };
            match leg.wire {
                Wire::Idle => told,
                Wire::Asks(_) => format!("{told}>"),
                Wire::Answers(_) => format!("{told}<"),
            }
        });
        let legs = legs.collect::<Vec<_>>().join(" ");
        format!("{}.{} {:?} ({legs})", name(at), client.attempt, client.phase)
    };
    let nodes: Vec<_> = state.nodes.iter().map(node).collect();
    let clients: Vec<_> = state.clients.iter().enumerate().map(client).collect();
    format!("{}  {}", nodes.join(" "), clients.join("  "))
}

fn name(client: usize) -> char {
    char::from(b'A' + client as u8)
}
