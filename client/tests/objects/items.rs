//! Items of compare-and-set in objects, when things go wrong.

use leasehold::ErrorKind;
use leasehold::cas::{Fate, Items};
use leasehold_servers::objects::Api;
use leasehold_servers::proxy::{Proxy, Request};

use crate::common::items::{count, one_more, writes_whose_answer_is_lost_count_once};
use crate::{APIS, server};

#[test]
fn a_write_whose_answer_is_lost_counts_once() {
    for api in APIS {
        let server = server(api);
        let proxy = Proxy::to(server.address());
        let writes = || {
            Request::matching(|bytes| {
                let starts = [&b"PUT "[..], b"POST /upload", b"POST /dbs/"];
                starts.iter().any(|start| bytes.starts_with(start))
            })
        };
        writes_whose_answer_is_lost_count_once(&proxy, &server.url_at(proxy.address(), "p"), &server.url("p"), writes);
    }
}

#[test]
fn an_object_of_somebody_else_is_left_alone() {
    let server = server(Api::Gcs);
    let items = Items::connect(server.url("p")).unwrap();
    for body in ["{}", "[]", "mine", r#"{"version":0,"value":""}"#, r#"{"version":1,"value":"%"}"#] {
        let path = "/upload/storage/v1/b/locks/o?uploadType=media&name=p%2Fitem%2Fa.json";
        assert_eq!(server.request("POST", path, body).status, 200);
        let error = items.update("a", one_more).unwrap_err();
        assert_eq!((error.trouble().kind(), error.fate()), (ErrorKind::StoreRefused, Fate::NotWritten), "{error}");
        assert_eq!(items.read("a").unwrap_err().kind(), ErrorKind::StoreRefused, "{body}");
    }
    // One that another program writes needs no ids.
    let path = "/upload/storage/v1/b/locks/o?uploadType=media&name=p%2Fitem%2Fb.json";
    assert_eq!(server.request("POST", path, r#"{"version":7,"value":"Y291bnQ9Nw=="}"#).status, 200);
    assert_eq!(items.update("b", one_more).unwrap().unwrap().version, 8);
    assert_eq!(count(&items, "b"), 8);
}
