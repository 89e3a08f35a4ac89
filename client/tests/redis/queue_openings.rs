//! Other libraries beside the queue: a lock that passes from hand to hand is free for them now and then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::common::on_redis::is_taken;
use crate::common::{PATIENCE, connect_patiently, eventually, ms};
use leasehold::blocking::Client;
use leasehold_servers::redis::Server;
use leasehold_servers::resp::Reply;
use leasehold_wire::redis::{ClientId, Codec};

const LINE: &str = "{job}\x1fline of name";
const HANDS: &str = "{job}\x1fline of name\x1fhands";

fn pass_on(client: &Client) {
    client.lock("job").wait(PATIENCE).acquire().unwrap().release().unwrap();
}

/// Ends the other threads of a test, also where it fails.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The next in the queue is a hand that listens, and takes no lock.
#[test]
fn a_release_leaves_the_lock_free_after_five_seconds_of_hand_overs() {
    let server = Server::start();
    let client = connect_patiently(server.url());
    let next = ClientId::new([7; 16]);
    let mut hears = server.connect();
    assert!(!hears.command(&[&b"SUBSCRIBE"[..], &next.channel()]).unwrap().is_error());
    let ticket = format!("{}:3", "07".repeat(16));
    let stands_in_queue = || {
        server.command(&["DEL", "job"]);
        server.command(&["ZADD", LINE, "1", &ticket]);
    };
    // Nobody has waited before, so nobody was kept out. Then the lock was passed on a moment ago, or 5 s ago, or so long ago that it
    // has to be done again; somebody else's key changes nothing.
    let passes = ["reserved", "open", "reserved", "reserved"];
    for (stood, passes) in ["-2", "60000", "60001", "-1"].into_iter().zip(passes) {
        let lease = client.lock("job").acquire().unwrap();
        server.command(&["ZADD", LINE, "1", &ticket]);
        match stood {
            "-2" => server.command(&["DEL", HANDS]),
            "-1" => server.command(&["SET", HANDS, ""]),
            // Time passes on the way.
            "60001" => server.command(&["SET", HANDS, "", "PX", "64000"]),
            left => server.command(&["SET", HANDS, "", "PX", left]),
        };
        lease.release().unwrap();
        let told = hears.receive().unwrap().array()[2].text();
        let (_, lock, after) = Codec::reserved_by(told.as_bytes()).unwrap();
        assert_eq!(lock.get(), 3);
        let left = server.command(&["PTTL", HANDS]).integer();
        if passes == "open" {
            assert_eq!((after, is_taken(&server, "job")), (ms(50), false), "{stood}");
            assert_eq!(server.command(&["ZRANGE", LINE, "0", "-1"]).array()[0].text(), ticket, "it keeps its place");
            assert!(server.command(&["PTTL", LINE]).integer() > 0);
        } else {
            assert_eq!((after.is_zero(), is_taken(&server, "job")), (true, true), "{stood}");
        }
        assert!(left > 60_000 || stood == "-1", "{stood}: {left}");
        stands_in_queue();
        server.command(&["DEL", LINE]);
    }
}

#[test]
fn a_library_that_polls_gets_a_lock_that_is_always_wanted() {
    let server = Server::start();
    let clients: Vec<Client> = (0..3).map(|_| connect_patiently(server.url())).collect();
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        let _end = EndOnDrop(&ends);
        for client in &clients {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    pass_on(client);
                }
            });
        }
        eventually("the lock passes from hand to hand", || server.command(&["PTTL", HANDS]).integer() > 0);
        let polls = || {
            thread::sleep(ms(20));
            matches!(server.command(&["SET", "job", "other", "NX", "PX", "2000"]), Reply::Status(_))
        };
        eventually("another library has the lock", polls);
        server.command(&["DEL", "job"]);
    });
}
