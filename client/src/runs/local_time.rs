//! Zones: the offsets of their clocks, of which the core makes the keys.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use leasehold_core::schedule::{OFFSETS_BACK, Offset};

/// The offsets of a zone that counted lately, as the core wants them.
///
/// # Errors
/// A zone that this machine does not know, or a clock so far off that the calendar has no such time.
pub(super) fn offsets(name: &str, unix_ms: u64) -> Result<Vec<Offset>, String> {
    let zone = zone(name)?;
    let instant = |unix_ms: u64| i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let offset = |at: Timestamp| Offset {
        since_unix_ms: u64::try_from(at.as_millisecond()).unwrap_or_default(),
        ahead_ms: i64::from(zone.to_offset(at).seconds()) * 1000,
    };
    let from = unix_ms.saturating_sub(u64::try_from(OFFSETS_BACK.as_millis()).unwrap_or(u64::MAX));
    let (Some(from), Some(now)) = (instant(from), instant(unix_ms)) else {
        return Err("the clock of this machine is too far off for local time: set it".to_owned());
    };
    let changes = zone.following(from).map(|change| change.timestamp()).take_while(|change| *change <= now);
    Ok([from].into_iter().chain(changes).map(offset).collect())
}

/// # Errors
/// A name that the database of zones does not have.
fn zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name).ok().filter(|zone| !zone.is_unknown()).ok_or_else(|| {
        format!("{name:?} is no zone that this machine knows: give its name in the IANA database, such as Europe/Berlin or UTC")
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold_core::Resource;
    use serde_json::Value;

    use super::super::{Occurrence, kept, present};
    use super::*;

    /// 01:00 in UTC on 25 October 2026, when Berlin sets its clocks from 03:00 back to 02:00.
    const BACK: u64 = 1_792_890_000_000;
    const HOUR: u64 = 3_600_000;
    const DAY: Duration = Duration::from_secs(86_400);

    fn local(at: Option<&str>, tz: Option<&str>, cron: Option<&str>) -> Occurrence {
        let given = |text: Option<&str>| text.map(str::to_owned);
        Occurrence { at: given(at), tz: given(tz), cron: given(cron), ..Occurrence::default() }
    }

    fn key(tz: &str, cron: &str, unix_ms: u64) -> String {
        present(&local(None, Some(tz), Some(cron)), unix_ms).unwrap().key.unwrap()
    }

    #[test]
    fn zones_give_the_offsets_that_counted_lately() {
        let shown = |ms: i64| offsets("Europe/Berlin", BACK.saturating_add_signed(ms)).unwrap();
        let ahead = |ms| shown(ms).iter().map(|offset| offset.ahead_ms / 3_600_000).collect::<Vec<_>>();
        assert_eq!(
            (ahead(-1), ahead(0), ahead(47 * 3_600_000), ahead(49 * 3_600_000)),
            (vec![2], vec![2, 1], vec![2, 1], vec![1])
        );
        assert_eq!(shown(0)[1].since_unix_ms, BACK);
    }

    /// The cases on which all hosts of the core agree.
    fn shared(of: &str) -> Vec<Value> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../bindings/occurrences.json");
        let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        file[of].as_array().unwrap().clone()
    }

    #[test]
    fn zones_have_the_offsets_of_all_hosts() {
        for case in shared("zones") {
            let found = offsets(case["zone"].as_str().unwrap(), case["unix_ms"].as_u64().unwrap()).unwrap();
            let found: Vec<_> = found.iter().map(|offset| (offset.since_unix_ms, offset.ahead_ms)).collect();
            assert_eq!(serde_json::to_value(found).unwrap(), case["offsets"], "{}", case["why"]);
        }
    }

    #[test]
    fn occurrences_are_those_of_all_hosts() {
        for case in shared("plans") {
            let (of, is) = (&case["occurrence"], |name: &str| case[name] == true);
            let text = |name: &str| of[name].as_str().map(str::to_owned);
            let length = |name: &str| of[name].as_u64().map(Duration::from_millis);
            let occurrence = Occurrence {
                key: text("key"),
                every: length("every"),
                offset: length("offset").unwrap_or_default(),
                at: text("at"),
                tz: text("tz"),
                cron: text("cron"),
                cooldown: length("cooldown"),
                keep: length("keep"),
            };
            let planned = present(&occurrence, case["unix_ms"].as_u64().unwrap()).and_then(|present| {
                let named = Resource::of_run("job", present.key.as_deref()).map_err(|error| error.to_string())?;
                Ok((named, kept(&occurrence, &present, is("quorum"), is("even_if_done"))?))
            });
            match (planned, case["refused"].as_str()) {
                (Ok((resource, keep)), None) => {
                    assert_eq!(resource.as_str(), case["resource"], "{}", case["why"]);
                    assert_eq!(u64::try_from(keep.as_millis()).unwrap(), case["keep"], "{}", case["why"]);
                }
                (Err(error), Some(words)) => assert!(error.contains(words), "{}: {error}", case["why"]),
                (planned, _) => panic!("{}: {planned:?}", case["why"]),
            }
        }
    }

    #[test]
    fn zones_are_known_where_the_system_has_none() {
        assert!(jiff::tz::TimeZoneDatabase::bundled().get("Europe/Berlin").is_ok());
    }

    #[test]
    fn keys_are_local_times_with_the_zone_as_typed() {
        assert_eq!(key("Europe/Berlin", "30 2 * * *", BACK + 12 * HOUR), "2026-10-25T02:30[Europe/Berlin]");
        assert_eq!(key("europe/berlin", "30 2 * * *", BACK + 12 * HOUR), "2026-10-25T02:30[europe/berlin]");
        assert_eq!(key("America/New_York", "30 2 * * *", BACK), "2026-10-24T02:30[America/New_York]");
        assert_eq!(key("Asia/Kolkata", "30 6 * * *", BACK), "2026-10-25T06:30[Asia/Kolkata]");
        assert_eq!(key("UTC", "30 2 * * *", BACK + HOUR), "2026-10-24T02:30[UTC]");
        // Samoa left out 30 December 2011 when it crossed the date line; it stayed on the 31st, and repeated nothing.
        let after = 1_325_239_200_000 + HOUR;
        assert_eq!(key("Pacific/Apia", "0 12 30 12 *", after), "2011-12-30T12:00[Pacific/Apia]");
    }

    #[test]
    fn the_time_of_day_moves_the_periods_of_a_zone() {
        let daily = Occurrence { every: Some(DAY), ..local(Some("02:30"), Some("Europe/Berlin"), None) };
        let at = |unix_ms| present(&daily, unix_ms).unwrap().key.unwrap();
        assert_eq!(at(BACK - HOUR / 2 - 1), "2026-10-24T02:30[Europe/Berlin]");
        for minutes in [-30, 0, 29, 30, 31, 59, 60, 600] {
            assert_eq!(
                at(BACK.saturating_add_signed(minutes * 60_000)),
                "2026-10-25T02:30[Europe/Berlin]",
                "{minutes}"
            );
        }
    }

    #[test]
    fn schedules_with_longer_pauses_than_a_quorum_keeps_are_refused_at_once() {
        let kept = |cron: &str, is_of_quorum| {
            let occurrence = local(None, Some("Europe/Berlin"), Some(cron));
            // A Monday, when the next time of all these is close.
            kept(&occurrence, &present(&occurrence, BACK).unwrap(), is_of_quorum, false)
        };
        assert_eq!(kept("0 2 * * 1-5", true), Ok(7 * DAY));
        assert!(kept("0 2 1 * *", true).unwrap_err().contains(" (6 d) apart"));
        assert!(kept("0 2 1 * *", false).is_ok(), "a single store keeps it as long as it takes");
    }

    #[test]
    fn settings_that_cannot_be_are_refused() {
        let day = Some(DAY);
        for (at, tz, cron, every, words) in [
            (Some("02:00"), Some("UTC"), None, None, "add every"),
            (Some("02:00"), None, None, day, "add tz"),
            (None, None, Some("0 2 * * *"), None, "add tz"),
            (None, Some("UTC"), None, None, "leave tz out"),
            (None, Some("Europe/Berln"), None, day, "\"Europe/Berln\" is no zone"),
            (None, Some(""), None, day, "\"\" is no zone"),
            (None, Some("../../etc/passwd"), None, day, "is no zone"),
            (None, Some("Etc/Unknown"), None, day, "is no zone"),
            (None, Some("UTC"), Some("0 0 30 2 *"), None, "never comes"),
            (None, Some("UTC"), Some("@daily"), None, "5 fields"),
            (Some("25:00"), Some("UTC"), None, day, "\"25:00\" is no time of day"),
            (Some("02:00"), Some("UTC"), None, Some(DAY / 2), "whole days"),
        ] {
            let error = present(&Occurrence { every, ..local(at, tz, cron) }, BACK).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        assert!(offsets("UTC", u64::MAX).is_err());
    }
}
