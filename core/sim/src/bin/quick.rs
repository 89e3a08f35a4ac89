fn main() {
    let mut args = std::env::args().skip(1);
    if std::env::args().nth(1).as_deref() == Some("show") {
        let seed: u64 = std::env::args().nth(2).unwrap().parse().unwrap();
        let trial = leasehold_sim::trial::seed(seed, None);
        let before: u64 = std::env::args().nth(3).map_or(2000, |n| n.parse().unwrap());
        let report =
            leasehold_sim::world::run(&trial.script, leasehold_sim::fates::Fates::written(&trial.script), true);
        let at = trial.broken.first().map_or(u64::MAX, |v| v.at_ns.0);
        println!("{:?}", trial.script.world);
        for h in &trial.script.hosts {
            println!("host {} ppm unborn {}", h.rate_ppm, h.unborn);
        }
        print!(
            "{}",
            leasehold_sim::text::render(
                &report.story.unwrap(),
                leasehold_sim::clock::TrueTime(at.saturating_sub(before * 1_000_000)),
                leasehold_sim::clock::TrueTime(at)
            )
        );
        println!("{:?}", trial.broken);
        return;
    }
    let from: u64 = args.next().unwrap().parse().unwrap();
    let to: u64 = args.next().unwrap().parse().unwrap();
    let show: usize = args.next().map_or(3, |n| n.parse().unwrap());
    let t = std::time::Instant::now();
    let mut counts = leasehold_sim::counts::Counts::default();
    let (mut bad, mut by) = (0, std::collections::BTreeMap::new());
    for seed in from..to {
        let trial = leasehold_sim::trial::seed(seed, None);
        counts.add(&trial.counts);
        if !trial.passed() {
            bad += 1;
            for v in &trial.broken {
                *by.entry(v.promise).or_insert(0) += 1;
            }
            if trial.differed {
                println!("seed {seed}: DIFFERED");
            }
            if bad <= show {
                println!("seed {seed}: {:?}", trial.broken.first());
            }
        }
    }
    for c in leasehold_sim::counts::Struck::ALL {
        println!("{:30} {}", c.words(), counts.struck(*c));
    }
    for c in leasehold_sim::counts::Sometimes::ALL {
        println!("   {:30} {}", c.words(), counts.seen(*c));
    }
    println!(
        "{bad} bad of {} in {:?}; {by:?}; steps {} requests {} time {} s",
        to - from,
        t.elapsed(),
        counts.steps,
        counts.requests,
        counts.time_ms / 1000
    );
}
