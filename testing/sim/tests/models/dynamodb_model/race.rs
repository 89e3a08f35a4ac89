//! Many writers of one row at the same time.

use std::sync::{Barrier, Mutex};
use std::time::Duration;

use leasehold_core::op::{Acquire, Applied, Op, Outcome, Refusal, Release};
use leasehold_core::{Nonce, Owner, Resource, Seq, Token};
use leasehold_servers::dynamodb::Server;

use super::wire::{Fate, Wire};

const WRITERS: u8 = 8;
const GRANTS: u32 = 15;

fn ask(wire: &Wire, resource: &Resource, op: &Op) -> Outcome {
    let mut flight = wire.begin(resource, op);
    loop {
        if let Some(outcome) = wire.advance(&mut flight, Fate::Answered) {
            return outcome;
        }
    }
}

fn acquire(nonce: Nonce, floor: Token) -> Op {
    Op::Acquire(Box::new(Acquire {
        floor,
        owner: Owner::new("racer").unwrap(),
        ..Acquire::new(nonce, Seq::new(1), Duration::from_secs(60))
    }))
}

/// Each has a floor of its own, some far above all tokens so far, so that both forms of the write meet one another.
#[test]
fn racing_writers_get_growing_tokens() {
    let resource = Resource::new("one row").unwrap();
    let server = Server::shared();
    let first = Wire::open(&server, 0);
    let (tokens, start) = (Mutex::new(Vec::new()), Barrier::new(usize::from(WRITERS)));
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (server, resource, tokens, start) = (&server, &resource, &tokens, &start);
            let codec = first.codec.clone();
            scope.spawn(move || {
                let wire = Wire::of(server, codec);
                start.wait();
                for grant in 0..GRANTS {
                    let mut nonce = [writer; 16];
                    nonce[..4].copy_from_slice(&grant.to_be_bytes());
                    let nonce = Nonce::from_bytes(nonce);
                    let floor = Token::new(u64::from(grant * u32::from(writer % 3) * 40)).unwrap();
                    loop {
                        match ask(&wire, resource, &acquire(nonce, floor)) {
                            Outcome::Applied(Applied::Acquired { counter }) => {
                                assert!(counter >= floor);
                                // No other client is granted anything before this one is released.
                                tokens.lock().unwrap().push(counter);
                                break;
                            }
                            Outcome::NotApplied(Refusal::Conflict(_)) => {}
                            other => panic!("{other:?}"),
                        }
                    }
                    let released = ask(&wire, resource, &Op::Release(Release { nonce, quorum: None }));
                    assert_eq!(released, Outcome::Applied(Applied::Released));
                }
            });
        }
    });
    let tokens = tokens.into_inner().unwrap();
    assert_eq!(tokens.len(), usize::from(WRITERS) * GRANTS as usize);
    let falls = tokens.windows(2).find(|two| two[0] >= two[1]);
    assert!(falls.is_none(), "{falls:?} among {tokens:?}");
}
