//! Items of compare-and-set that are counters, and answers that get lost.

use std::thread;

use leasehold::ErrorKind;
use leasehold::cas::{Fate, Items};
use leasehold_servers::proxy::{Proxy, Request};

/// The number in the value of a counter.
pub(crate) fn number(value: Option<&[u8]>) -> u64 {
    let digits = |value| std::str::from_utf8(value).unwrap().strip_prefix("count=").unwrap();
    value.map_or(0, |value| digits(value).parse().unwrap())
}

/// One more than that.
#[allow(clippy::unnecessary_wraps, reason = "as updates want it")]
pub(crate) fn one_more(value: Option<&[u8]>) -> Option<Vec<u8>> {
    Some(format!("count={}", number(value) + 1).into_bytes())
}

pub(crate) fn count(items: &Items, name: &str) -> u64 {
    number(items.read(name).unwrap().as_ref().map(|item| item.value.as_slice()))
}

/// Loses answers to writes, and writes, at a proxy, behind which is the store that both urls name. `writes` knows a write.
pub(crate) fn writes_whose_answer_is_lost_count_once(
    proxy: &Proxy,
    behind: &str,
    direct: &str,
    writes: impl Fn() -> Request,
) {
    let (items, direct) = (Items::connect(behind).unwrap(), Items::connect(direct).unwrap());
    for (name, is_applied) in [("applied", true), ("not applied", false)] {
        items.update(name, one_more).unwrap();
        let lose = || {
            if is_applied { proxy.reset_after_forwarding(writes()) } else { proxy.reset_before_forwarding(writes()) }
        };
        let (fault, mut asked) = (lose(), 0);
        let update = |old: Option<&[u8]>| {
            asked += 1;
            one_more(old)
        };
        let item = items.update(name, update).unwrap().unwrap();
        assert_eq!((fault.hits(), item.version, count(&direct, name), asked), (1, 2, 2, 1), "{name}");

        // Others write before it is sent again, or after.
        let fault = lose();
        thread::scope(|scope| {
            scope.spawn(|| {
                fault.wait_for_hits(1);
                (0..3).for_each(|_| drop(direct.update(name, one_more).unwrap()));
            });
            items.update(name, one_more).unwrap().unwrap();
        });
        assert_eq!(count(&direct, name), 6, "{name}");
    }

    let few = items.clone().tries(2);
    let fault = proxy.reset_after_forwarding(writes().always());
    let error = few.update("applied", one_more).unwrap_err();
    assert_eq!((error.tries(), error.fate(), error.is_contended()), (2, Fate::Unknown, false), "{error}");
    assert_eq!(format!("{error:?}"), format!("{error} (kind: {:?})", error.trouble().kind()));
    assert_eq!((error.trouble().kind(), fault.hits()), (ErrorKind::StoreUnavailable, 2), "{error}");
    assert_eq!(count(&direct, "applied"), 7, "and it was");
    proxy.pass();
    assert_eq!(items.update("applied", one_more).unwrap().unwrap().version, 8);
}
