//! `leasehold quorum`: marks new stores as a quorum, shows which of its nodes vote, and waits until they do.

use leasehold::quorum::{Force, Init, Join, JoinProgress, NodeStatus, Quorum, Standing};
use serde_json::json;

use crate::args::{InitArgs, JoinArgs, QuorumAction, QuorumArgs, StatusArgs};
use crate::output::{Failure, answer, answer_json, ms, printable, say, seconds, utc};
use crate::status;
use crate::store::{Target, must_be_shared};

pub(crate) fn run(args: &QuorumArgs, target: &Target) -> Result<u8, Failure> {
    match &args.action {
        QuorumAction::Init(args) => init(args, target),
        QuorumAction::Status(args) => status(args, target),
        QuorumAction::Join(args) => join(args, target),
    }
}

fn init(args: &InitArgs, target: &Target) -> Result<u8, Failure> {
    must_be_shared(&leasehold::Stores::urls(target)?)?;
    let quorum = target.quorum()?;
    let force = if args.force { Force::Yes } else { Force::No };
    let done = quorum.init(force)?;
    if args.json {
        let (result, marked, left_out, recovering) = match &done {
            Init::Marked { nodes, left_out } => ("marked", *nodes, left_out.as_slice(), [].as_slice()),
            Init::Recovering { nodes } => ("recovering", 0, [].as_slice(), nodes.as_slice()),
            Init::ComingUp => ("coming_up", 0, [].as_slice(), [].as_slice()),
            Init::Exists | _ => ("exists", 0, [].as_slice(), [].as_slice()),
        };
        answer_json(&json!({
            "quorum": quorum.id(),
            "result": result,
            "nodes": marked,
            "left_out": left_out,
            "recovering": recovering,
        }))?;
    } else {
        answer(&printable(&init_text(&quorum, &done)))?;
    }
    if let Init::Marked { left_out, .. } = &done
        && args.force
    {
        say(
            "all nodes that answered vote now, whatever they remembered: if a lock is held, two clients may hold it now",
        );
        for name in left_out {
            say(format_args!(
                "{name} did not answer and was left out; start it and mark it, too, before any lock is acquired"
            ));
        }
    }
    Ok(match done {
        Init::Recovering { .. } | Init::ComingUp => status::NOTHING,
        Init::Marked { .. } | Init::Exists | _ => status::DONE,
    })
}

fn init_text(quorum: &Quorum, done: &Init) -> String {
    let (id, wait) = (quorum.id(), seconds(quorum.abstention()));
    match done {
        Init::Marked { nodes, .. } => format!(
            "quorum {id}: {nodes} nodes are members now, max_ttl {}; give all clients the same nodes\n",
            seconds(quorum.max_ttl())
        ),
        Init::Recovering { nodes } => format!(
            "quorum {id}: nothing was done: {} lost its data, or was restarted; it votes again once a client that \
             wants a lock has waited {wait} for it: run `leasehold quorum join`, unless a program waits for a lock \
             anyway\n",
            nodes.join(", ")
        ),
        Init::ComingUp => format!(
            "quorum {id}: nothing was done: clients are already waiting for it to come up by itself, {wait} after the \
             first of them began; `leasehold quorum join` waits for that. With --force it is ready at once; use that \
             only while no lock is held\n"
        ),
        Init::Exists | _ => format!("quorum {id}: all nodes are members already\n"),
    }
}

fn status(args: &StatusArgs, target: &Target) -> Result<u8, Failure> {
    let quorum = target.quorum()?;
    let nodes = quorum.status();
    let voting = voting(&nodes);
    if args.json {
        let shown: Vec<_> = nodes.iter().map(node_json).collect();
        answer_json(&json!({
            "quorum": quorum.id(),
            "max_ttl_ms": ms(quorum.max_ttl()),
            "majority": quorum.majority(),
            "voting": voting,
            "nodes": shown,
        }))?;
    } else {
        answer(&printable(&text(&quorum, &nodes, voting)))?;
    }
    Ok(if voting >= quorum.majority() { status::DONE } else { status::NOTHING })
}

fn join(args: &JoinArgs, target: &Target) -> Result<u8, Failure> {
    must_be_shared(&leasehold::Stores::urls(target)?)?;
    let quorum = target.quorum()?;
    let (id, majority) = (quorum.id(), quorum.majority());
    let mut reported = (Vec::new(), 0);
    let done = quorum.join(args.timeout, |progress| {
        // The words of an error may change without any news.
        let standings: Vec<Standing> = progress.nodes.iter().map(|node| node.standing).collect();
        let news = (standings, progress.reasons.len());
        if reported != news {
            reported = news;
            tell(progress, majority);
        }
    })?;
    let (result, nodes, reasons) = match done {
        Join::Complete { nodes } => ("complete", nodes, Vec::new()),
        Join::TimedOut { nodes, reasons } => ("timed_out", nodes, reasons),
        _ => ("timed_out", Vec::new(), Vec::new()),
    };
    let voting = voting(&nodes);
    if args.json {
        let shown: Vec<_> = nodes.iter().map(node_json).collect();
        answer_json(&json!({
            "quorum": id,
            "result": result,
            "majority": majority,
            "voting": voting,
            "reasons": reasons,
            "nodes": shown,
        }))?;
    } else {
        let mut text = format!("quorum {id}: {voting} of {} nodes vote, {majority} are needed\n", nodes.len());
        let silent = nodes.iter().filter(|node| result == "complete" && !node.standing.answers());
        let silent = silent.map(|node| format!("{} {}", node.name, node.meaning));
        for line in reasons.iter().cloned().chain(silent) {
            text.push_str(&format!("  {line}\n"));
        }
        answer(&printable(&text))?;
    }
    Ok(if result == "complete" { status::DONE } else { status::NOTHING })
}

/// The message about a wait and its time limit.
fn tell(progress: &JoinProgress, majority: usize) {
    let until = utc(progress.until_unix_ms).map(|date| format!(", until {date}")).unwrap_or_default();
    say(format_args!(
        "{} of {} nodes vote, {majority} are needed; waiting at most {}{until} for:",
        voting(&progress.nodes),
        progress.nodes.len(),
        seconds(progress.left),
    ));
    for reason in &progress.reasons {
        say(format_args!("- {reason}"));
    }
}

fn voting(nodes: &[NodeStatus]) -> usize {
    nodes.iter().filter(|node| node.standing.votes()).count()
}

fn node_json(node: &NodeStatus) -> serde_json::Value {
    json!({
        "name": node.name,
        "standing": node.standing.name(),
        "answers": node.standing.answers(),
        "votes": node.standing.votes(),
        "quorum": node.quorum,
        "max_ttl_ms": node.max_ttl.map(ms),
        "run": node.run,
        "durable": node.durable,
        "meaning": node.meaning,
    })
}

fn text(quorum: &Quorum, nodes: &[NodeStatus], voting: usize) -> String {
    let (id, majority) = (quorum.id(), quorum.majority());
    let mut text = format!(
        "quorum {id}, max_ttl {}\n{voting} of {} nodes vote, {majority} are needed{}\n",
        seconds(quorum.max_ttl()),
        nodes.len(),
        if voting < majority { ": no lock can be acquired now" } else { "" },
    );
    for node in nodes {
        text.push_str(&format!("\n{}\n  standing   {}\n", node.name, node.standing.name()));
        // Values that agree with the quorum's are shown above.
        if let Some(other) = node.quorum.as_ref().filter(|other| **other != id) {
            text.push_str(&format!("  quorum     {other}\n"));
        }
        if let Some(other) = node.max_ttl.filter(|other| *other != quorum.max_ttl()) {
            text.push_str(&format!("  max_ttl    {}\n", seconds(other)));
        }
        if let Some(run) = &node.run {
            text.push_str(&format!("  run        {run}{}\n", if node.durable { ", declared durable" } else { "" }));
        }
        text.push_str(&format!("  meaning    {}\n", node.meaning));
    }
    text
}
