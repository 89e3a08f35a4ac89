//! Runs by the clocks of a zone, for as long as it takes them to be set forward and back.

use std::collections::BTreeSet;
use std::time::Duration;

use leasehold::blocking::{Client, Once, RunRequest};

use super::{secs, two};

const DAY: Duration = Duration::from_secs(86_400);
const HALF_AN_HOUR: Duration = Duration::from_secs(1_800);

/// The keys of what two machines do in a year, each of which asks every half an hour.
fn of_a_year(request: impl Fn(&Client) -> RunRequest) -> Vec<String> {
    let (clock, client, rival) = two();
    let mut keys = Vec::new();
    for step in 0..366 * 48 {
        let asks = if step % 2 == 0 { [&client, &rival] } else { [&rival, &client] };
        for asking in asks {
            if let Once::Run(run) = request(asking).begin().unwrap() {
                keys.push(run.resource().split_once('@').unwrap().1.to_owned());
                run.finish().unwrap();
            }
        }
        clock.advance(HALF_AN_HOUR);
    }
    keys
}

#[test]
fn a_year_has_as_many_runs_as_nights() {
    // Kept for too short a time: it stands until the next night all the same.
    let nights = of_a_year(|client| client.once("report").every(DAY).at("02:30").tz("Europe/Berlin").keep(secs(60)));
    assert!((366..=367).contains(&nights.len()), "{}", nights.len());
    let dates: BTreeSet<&str> =
        nights.iter().map(|night| night.strip_suffix("T02:30[Europe/Berlin]").unwrap()).collect();
    assert_eq!(dates.len(), nights.len(), "each once: {nights:?}");
    assert!(dates.into_iter().eq(nights.iter().map(|night| &night[..10])), "in order: {nights:?}");
    let in_march = |night: &&String| night.contains("-03-");
    assert_eq!(nights.iter().filter(in_march).count(), 31, "also the night in which 02:30 does not come");
}

#[test]
fn a_cron_expression_has_a_run_for_each_of_its_times() {
    let weekly = of_a_year(|client| client.once("report").cron("30 2 * * 0").tz("Europe/Berlin"));
    assert!((52..=54).contains(&weekly.len()), "clocks are set on Sundays: {weekly:?}");
    assert_eq!(weekly.iter().collect::<BTreeSet<_>>().len(), weekly.len(), "{weekly:?}");
}
