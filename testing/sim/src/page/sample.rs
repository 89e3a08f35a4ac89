//! Stories like those the simulator tells, made by hand: to look at the page without running anything.

use crate::clock::TrueTime;
use crate::timeline::{Arrow, ArrowFate, ArrowKind, Lane, LaneKind, Mark, MarkKind, Span, SpanKind, Timeline};

const MS: u64 = 1_000_000;
const TTL: u64 = 2_000 * MS;

/// Three hosts, one store, one register, two resources: everything goes wrong, and nothing is broken.
pub(super) fn healthy() -> Timeline {
    let mut scene = Scene::new(7, 3);
    scene.timeline.title = "A healthy run: seed 7".to_owned();
    scene.timeline.facts = facts(&[("seed", "7"), ("faults", "loss, delay, duplicates, pause, crash"), ("ttl", "2 s")]);
    for resource in 0..2 {
        let pause = (resource == 0).then_some(6);
        scene.leases(resource, 21, pause);
    }
    let crash = scene.at(31_300);
    scene.span(2, SpanKind::Dead, None, crash, crash + 1_900 * MS, "crashed");
    scene.mark(Some(2), None, crash, MarkKind::Fault, "killed");
    let (store, from) = (scene.store(), scene.at(17_600));
    scene.span(store, SpanKind::Fault, None, from, from + 1_400 * MS, "throttles: 1 of 4 requests refused");
    scene.mark(None, None, scene.at(24_200), MarkKind::Fault, "latency of the whole network doubles");
    scene.done()
}

/// A clock that runs far beyond what the protocol stands: two hosts believe in one lock.
pub(super) fn violating() -> Timeline {
    let mut scene = Scene::new(42, 3);
    scene.timeline.title = "cargo xtask sim --seed 42".to_owned();
    scene.timeline.facts = facts(&[("seed", "42"), ("faults", "drift, loss, delay"), ("ttl", "2 s"), ("broken", "1")]);
    scene.timeline.lanes[1].detail = "clock \u{2212}12 % (beyond the bound of 0.1 %)".to_owned();
    let broken = scene.leases(0, 6, None);
    scene.leases(1, 6, None);
    let grant = scene.believe(1, 0, 7, broken, 2_410 * MS, "its slow clock says 1.98 s");
    scene.span(scene.store(), SpanKind::Record, Some((0, 1, 7)), grant, grant + TTL, "expired");
    scene.span(1, SpanKind::Fault, None, broken - 3_000 * MS, broken + 4_000 * MS, "clock runs 12 % slow");
    for (after, fate) in [(600, ArrowFate::Lost), (1_200, ArrowFate::Lost)] {
        scene.message(1, scene.store(), broken + after * MS, ArrowKind::Renew, fate, "renew 7");
    }
    let second = grant + TTL + 30 * MS;
    scene.wait(2, 0, second - 900 * MS, second);
    scene.ask(2, second, ArrowKind::Acquire, true, "acquire");
    let got = scene.believe(2, 0, 8, second + 14 * MS, 1_500 * MS, "released");
    scene.span(scene.store(), SpanKind::Record, Some((0, 2, 8)), got - 6 * MS, got + 1_500 * MS, "released");
    scene.write(2, 0, got + 120 * MS, 8, true);
    scene.write(1, 0, got + 230 * MS, 7, false);
    let label = "I1 two holders of resource 0: host 1 (token 7), host 2 (token 8)";
    scene.mark(Some(2), Some(0), got, MarkKind::Violation, label);
    scene.done()
}

/// As much as a page must bear.
pub(super) fn big() -> Timeline {
    let mut scene = Scene::new(1_000, 5);
    scene.timeline.title = "A long run: seed 1000".to_owned();
    scene.timeline.facts = facts(&[("seed", "1000"), ("faults", "loss, delay, duplicates"), ("ttl", "2 s")]);
    for resource in 0..6 {
        scene.leases(resource, 80, Some(20));
    }
    scene.done()
}

fn facts(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

struct Scene {
    timeline: Timeline,
    hosts: usize,
    state: u64,
}

impl Scene {
    fn new(seed: u64, hosts: usize) -> Self {
        let mut lanes: Vec<Lane> = (0..hosts)
            .map(|host| lane(&format!("host {host}"), LaneKind::Host, &format!("clock +{} ppm", host * 40)))
            .collect();
        lanes.push(lane("store", LaneKind::Store, "Redis-like, expires by its own clock"));
        lanes.push(lane("register", LaneKind::Register, "refuses tokens smaller than the largest seen"));
        let timeline = Timeline { commit: "5f0c2ab91d3e".to_owned(), lanes, ..Timeline::default() };
        Self { timeline, hosts, state: seed }
    }

    fn store(&self) -> usize {
        self.hosts
    }

    fn at(&self, ms: u64) -> u64 {
        ms * MS
    }

    fn random(&mut self, below: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % below
    }

    fn span(
        &mut self,
        lane: usize,
        kind: SpanKind,
        about: Option<(usize, usize, u64)>,
        from: u64,
        to: u64,
        label: &str,
    ) {
        self.timeline.spans.push(Span {
            lane,
            kind,
            resource: about.map(|(resource, _, _)| resource),
            owner: about.map(|(_, owner, _)| owner),
            token: about.map(|(_, _, token)| token).filter(|token| *token > 0),
            from_ns: TrueTime(from),
            to_ns: TrueTime(to),
            label: label.to_owned(),
        });
    }

    fn mark(&mut self, lane: Option<usize>, resource: Option<usize>, at: u64, kind: MarkKind, label: &str) {
        self.timeline.marks.push(Mark { lane, resource, at_ns: TrueTime(at), kind, label: label.to_owned() });
    }

    /// Sends one message and says when it arrives, or would have.
    fn message(&mut self, from: usize, to: usize, sent: u64, kind: ArrowKind, fate: ArrowFate, label: &str) -> u64 {
        let usual = (4 + self.random(9)) * MS + self.random(MS);
        let took = if fate == ArrowFate::Delayed { usual + (300 + self.random(900)) * MS } else { usual };
        self.timeline.arrows.push(Arrow {
            from,
            to,
            resource: None,
            sent_ns: TrueTime(sent),
            arrived_ns: (fate != ArrowFate::Lost).then_some(TrueTime(sent + took)),
            kind,
            fate,
            label: label.to_owned(),
        });
        sent + usual
    }

    /// A request of the store and its answer; says when the answer arrives.
    fn ask(&mut self, host: usize, sent: u64, kind: ArrowKind, done: bool, label: &str) -> u64 {
        let store = self.store();
        match self.random(24) {
            0 => {
                self.message(host, store, sent, kind, ArrowFate::Lost, label);
                return self.ask(host, sent + 60 * MS, kind, done, label);
            }
            1 => {
                self.message(host, store, sent, kind, ArrowFate::Delayed, label);
                return self.ask(host, sent + 60 * MS, kind, done, label);
            }
            2 => {
                self.message(host, store, sent + MS, kind, ArrowFate::Duplicate, label);
            }
            _ => {}
        }
        let there = self.message(host, store, sent, kind, ArrowFate::Normal, label);
        let answer = if done { (ArrowKind::Applied, "applied") } else { (ArrowKind::NotApplied, "conflict") };
        self.message(store, host, there, answer.0, ArrowFate::Normal, answer.1)
    }

    fn wait(&mut self, host: usize, resource: usize, from: u64, to: u64) {
        self.span(host, SpanKind::Waiting, Some((resource, host, 0)), from, to, "waits");
        self.ask(host, from, ArrowKind::Acquire, false, "acquire");
    }

    fn believe(&mut self, host: usize, resource: usize, token: u64, from: u64, lasts: u64, end: &str) -> u64 {
        self.span(host, SpanKind::Belief, Some((resource, host, token)), from, from + lasts, end);
        self.mark(Some(host), Some(resource), from, MarkKind::Event, &format!("acquired, token {token}"));
        from
    }

    fn write(&mut self, host: usize, resource: usize, sent: u64, token: u64, accepted: bool) {
        let register = self.hosts + 1;
        let label = format!("token {token}");
        let there = self.message(host, register, sent, ArrowKind::Write, ArrowFate::Normal, &label);
        let (kind, answer) = if accepted { (MarkKind::Accepted, "accepted") } else { (MarkKind::Refused, "refused") };
        self.mark(Some(register), Some(resource), there, kind, &format!("{label} {answer}"));
        self.message(register, host, there, ArrowKind::Written, ArrowFate::Normal, answer);
    }

    /// `count` leases of one resource, one after the other; the one numbered `pause` is lost by a pause. Says when the
    /// last one is over.
    fn leases(&mut self, resource: usize, count: u64, pause: Option<u64>) -> u64 {
        let mut now = (120 + 310 * resource as u64) * MS;
        let mut host = resource % self.hosts;
        for token in 1..=count {
            if self.random(3) > 0 && now > 1_000 * MS {
                let patience = (200 + self.random(700)) * MS;
                self.wait(host, resource, now - patience, now);
                self.message(self.store(), host, now - 12 * MS, ArrowKind::Wake, ArrowFate::Normal, "wake");
            }
            let got = self.ask(host, now, ArrowKind::Acquire, true, "acquire");
            now = if pause == Some(token) {
                self.paused(host, resource, token, got)
            } else {
                self.kept(host, resource, token, got)
            };
            host = (host + 1 + self.random(self.hosts as u64 - 1) as usize) % self.hosts;
        }
        now
    }

    fn kept(&mut self, host: usize, resource: usize, token: u64, got: u64) -> u64 {
        let lasts = (500 + self.random(1_700)) * MS;
        let over = got + lasts;
        self.believe(host, resource, token, got, lasts, "released");
        let mut renewal = got + 600 * MS;
        while renewal + 200 * MS < over {
            self.ask(host, renewal, ArrowKind::Renew, true, &format!("renew {token}"));
            renewal += 600 * MS;
        }
        self.write(host, resource, got + lasts / 3, token, true);
        let released = self.ask(host, over, ArrowKind::Release, true, &format!("release {token}"));
        self.span(
            self.store(),
            SpanKind::Record,
            Some((resource, host, token)),
            got - 6 * MS,
            released - 6 * MS,
            "released",
        );
        released + (20 + self.random(160)) * MS
    }

    fn paused(&mut self, host: usize, resource: usize, token: u64, got: u64) -> u64 {
        self.believe(host, resource, token, got, TTL - 40 * MS, "lost by the clock");
        self.span(self.store(), SpanKind::Record, Some((resource, host, token)), got - 6 * MS, got + TTL, "expired");
        let (from, to) = (got + 450 * MS, got + 3_100 * MS);
        self.span(host, SpanKind::Paused, None, from, to, "stopped for 2.65 s");
        self.mark(Some(host), Some(resource), to, MarkKind::Event, "lost");
        self.write(host, resource, to + 5 * MS, token, false);
        got + TTL + 60 * MS
    }

    fn done(mut self) -> Timeline {
        let spans = self.timeline.spans.iter().map(|span| span.to_ns.0);
        let arrows = self.timeline.arrows.iter().filter_map(|arrow| arrow.arrived_ns).map(|at| at.0);
        self.timeline.end_ns = TrueTime(spans.chain(arrows).max().unwrap_or(0) + 200 * MS);
        self.timeline
    }
}

fn lane(name: &str, kind: LaneKind, detail: &str) -> Lane {
    Lane { name: name.to_owned(), kind, detail: detail.to_owned() }
}
