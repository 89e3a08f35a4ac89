use leasehold::blocking::{Client, Lease};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;

const SECOND: u64 = 1_000_000_000;

/// The lines of the screen, three seconds after 1970.
fn drawn(view: &mut View, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame, 3 * SECOND)).unwrap();
    let buffer = terminal.backend().buffer();
    let mut lines = Vec::new();
    for y in 0..height {
        let symbols = (0..width).map(|x| buffer[(x, y)].symbol());
        lines.push(symbols.collect::<String>());
    }
    lines
}

/// Locks of a store in memory, held until the second value is dropped.
fn view(names: &[&str]) -> (View, Vec<Lease>, Client) {
    let client = Client::connect("memory:").unwrap();
    let lock =
        |name: &&str| client.lock(*name).owner("worker-7:1:main").ttl(Duration::from_secs(3_600)).acquire().unwrap();
    let leases = names.iter().map(lock).collect();
    let mut view = View::new("memory:".to_owned(), "");
    view.learn(look(&client));
    (view, leases, client)
}

fn look(client: &Client) -> Look {
    let locks = client.list("").collect();
    Look { locks, is_complete: true, waiting: HashMap::new(), at_ns: SECOND, unix_ms: leasehold::ffi::clocks().1 }
}

fn trouble(why: leasehold::Error) -> Look {
    Look { locks: Err(why), is_complete: false, waiting: HashMap::new(), at_ns: 2 * SECOND, unix_ms: 0 }
}

#[test]
fn columns_are_left_out_where_there_is_no_room() {
    let (mut view, _leases, _client) = view(&["nightly"]);
    view.waiting = HashMap::from([("nightly".to_owned(), 12)]);
    for (width, titles) in [
        (120, "LOCK HOLDER TOKEN SINCE LEFT WAIT"),
        (80, "LOCK HOLDER TOKEN SINCE LEFT WAIT"),
        (70, "LOCK HOLDER TOKEN LEFT WAIT"),
        (54, "LOCK HOLDER LEFT WAIT"),
        (50, "LOCK HOLDER LEFT"),
        (42, "LOCK HOLDER"),
    ] {
        let screen = drawn(&mut view, width, 6);
        assert_eq!(screen[2].split_whitespace().collect::<Vec<_>>().join(" "), titles, "{screen:?}");
        assert!(screen[3].starts_with("nightly ") && screen[3].contains("worker-7:1:main"), "{screen:?}");
    }
    assert!(drawn(&mut view, 80, 6)[0].starts_with("leasehold 1 held, by name  memory:"));
    assert!(drawn(&mut view, 80, 6)[3].ends_with("   12"));
}

#[test]
fn sessions_are_shown_where_locks_have_any() {
    let (mut view, _leases, client) = view(&["nightly"]);
    assert!(!drawn(&mut view, 120, 6)[2].contains("SESSION"));
    let worker = Client::connect_with(leasehold::Client::builder().session("ci-42"), "memory:sessions").unwrap();
    let _lease = worker.lock("weekly").acquire().unwrap();
    view.learn(Look { locks: worker.list("").collect(), ..look(&client) });
    let screen = drawn(&mut view, 120, 6);
    assert!(screen[2].contains(" SESSION ") && screen[3].contains(" ci-42 "), "{screen:?}");
    assert!(!drawn(&mut view, 70, 6)[2].contains("SESSION"), "names need the room");
}

#[test]
fn no_size_is_too_small() {
    let (mut view, _leases, _client) = view(&["nightly", "錠前", "other"]);
    for width in (0..90).step_by(3) {
        for height in 0..7 {
            let _screen = drawn(&mut view, width, height);
            view.scroll(Scroll::End);
        }
    }
}

#[test]
fn hostile_names_stay_in_their_cells() {
    let heap = "e\u{301}".to_owned() + &"\u{301}".repeat(100);
    let names = ["a\u{202e}b", &"錠".repeat(90), &heap, &"x".repeat(900), "tag\u{e0041}", "line\u{2028}end", "é"];
    let (mut view, _leases, _client) = view(&names);
    let screen = drawn(&mut view, 80, 12);
    // A wide character leaves its second cell empty, which counts as a column here too.
    let rows = &screen[3..3 + names.len()];
    for row in rows {
        let holder = row.find("worker-7:1:main").unwrap();
        assert!(wide(&row[..holder]) >= 20 && row.len() < 250, "{row:?}");
    }
    let all = rows.concat();
    for text in ["a\\u{202e}b", "tag\\u{e0041}", "line\\u{2028}end", "錠", "é", "\u{fffd}", "x…", "xxxx"] {
        assert!(all.contains(text), "{text:?} in {rows:#?}");
    }
    assert!(!all.contains(&heap));
}

#[test]
fn texts_are_cut_off_at_whole_characters() {
    for (text, width, shown) in [
        ("nightly", 7, "nightly"),
        ("nightly", 6, "night…"),
        ("錠前錠前", 8, "錠前錠前"),
        ("錠前錠前", 7, "錠前錠…"),
        ("錠前錠前", 6, "錠前…"),
        ("nightly", 1, "…"),
        ("nightly", 0, ""),
    ] {
        assert_eq!(fit(text, width), shown);
    }
}

#[test]
fn old_rows_stay_while_the_store_does_not_answer() {
    let (mut view, _leases, client) = view(&["nightly"]);
    view.learn(trouble(Client::connect("redis://127.0.0.1:1").and_then(|down| down.inspect("x")).unwrap_err()));
    let screen = drawn(&mut view, 80, 6);
    assert!(screen[1].starts_with("no answer, seen 2 s ago: ") && screen[3].starts_with("nightly"), "{screen:?}");
    view.learn(look(&client));
    assert_eq!(drawn(&mut view, 80, 6)[1].trim(), "");
}

#[test]
fn the_rows_that_are_scrolled_to_exist() {
    let (mut view, _leases, client) = view(&["a", "b", "c", "d", "e"]);
    let first = |view: &mut View| drawn(view, 80, 6)[3].chars().next();
    assert_eq!(first(&mut view), Some('a'));
    for (by, shown) in [(Scroll::Down, 'b'), (Scroll::End, 'd'), (Scroll::PageUp, 'b'), (Scroll::PageDown, 'd')] {
        view.scroll(by);
        assert_eq!(first(&mut view), Some(shown));
    }
    assert_eq!(view.visible(), ["d", "e"]);
    assert!(drawn(&mut view, 80, 6)[5].starts_with("4 to 5  q quit"));
    view.learn(Look { locks: client.list("a").collect(), ..look(&client) });
    assert_eq!(first(&mut view), Some('a'));
    view.learn(Look { locks: Ok(Vec::new()), ..look(&client) });
    assert!(drawn(&mut view, 80, 6)[2].starts_with("no lock is held"));
}

#[test]
fn the_oldest_or_the_shortest_may_come_first() {
    let (mut view, _leases, client) = view(&["b", "a"]);
    let _brief = client.lock("c").ttl(Duration::from_secs(600)).acquire().unwrap();
    view.learn(look(&client));
    let names = |view: &View| view.locks.iter().map(|row| row.name.clone()).collect::<String>();
    assert_eq!(names(&view), "abc");
    view.sort_otherwise();
    let times: Vec<_> = view.locks.iter().map(|row| row.lock.since_unix_ms).collect();
    assert!(times.is_sorted());
    view.sort_otherwise();
    assert!(names(&view).starts_with('c'));
    assert!(drawn(&mut view, 80, 6)[0].contains("the shortest first"));
    view.sort_otherwise();
    assert_eq!(names(&view), "abc");
}

#[test]
fn lengths_of_time_fit_their_column() {
    let texts = [(0, "0 s"), (99, "99 s"), (100, "1 min"), (5_999, "99 min"), (6_000, "1 h"), (172_800, "2 d")];
    for (seconds, text) in texts {
        assert_eq!(span(Duration::from_secs(seconds)), text);
    }
    assert!(span(Duration::MAX).len() <= 6);
}
