//! Items of compare-and-set on a real PostgreSQL, when things go wrong.

use leasehold::ErrorKind;
use leasehold::cas::{Fate, Items};
use leasehold_servers::proxy::{Proxy, Request};

use crate::Rig;
use crate::common::items::{count, one_more, writes_whose_answer_is_lost_count_once};

#[test]
fn a_write_whose_answer_is_lost_counts_once() {
    let rig = Rig::new();
    let proxy = Proxy::to(rig.server.address());
    let behind = format!("{}?schema={}", rig.server.url_at(proxy.port()), rig.schema());
    // The value, since a prepared statement is not sent again.
    writes_whose_answer_is_lost_count_once(&proxy, &behind, &rig.url, || Request::containing("count="));
}

#[test]
fn a_missing_table_a_missing_right_and_rows_of_others_are_told_apart() {
    let rig = Rig::new();
    let (items, table) = (Items::connect(&rig.url).unwrap(), format!("{}.leasehold_items", rig.schema()));
    let refused = |what: &str| {
        let error = items.update("counter", one_more).unwrap_err();
        assert_eq!((error.trouble().kind(), error.fate()), (ErrorKind::StoreRefused, Fate::NotWritten), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    };
    items.update("counter", one_more).unwrap();
    rig.server.run(&format!("UPDATE {table} SET write_ids = 'mine'"));
    refused("writeIds");
    assert_eq!(items.read("counter").unwrap_err().kind(), ErrorKind::StoreRefused);
    // Deleted in between, it begins again.
    rig.server.run(&format!("UPDATE {table} SET write_ids = ''"));
    let mut asked = 0;
    let meddle = |old: Option<&[u8]>| {
        asked += 1;
        if asked == 1 {
            rig.server.run(&format!("DELETE FROM {table}"));
        }
        one_more(old)
    };
    assert_eq!((items.update("counter", meddle).unwrap().unwrap().version, asked), (1, 2));
    rig.server.run(&format!("ALTER TABLE {table} RENAME TO elsewhere"));
    refused("leasehold store create");
    rig.server.run(&format!("ALTER TABLE {}.elsewhere RENAME TO leasehold_items", rig.schema()));
    assert_eq!(count(&items, "counter"), 1);
}
