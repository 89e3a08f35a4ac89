//! Reads that are behind, as those of Cosmos DB may be.

use super::*;

/// Reads that are behind show a lock as it was before the last two writes.
#[test]
fn a_lease_is_over_only_where_a_write_has_shown_it() {
    let mut bucket = Bucket::new(Service::CosmosDb);
    let stale = || {
        let mut memory = Memory::default();
        memory.set_may_be_stale(true);
        memory
    };
    let free = |bucket: &mut Bucket| {
        assert!(matches!(bucket.ask(acquire(9)), Outcome::Applied(_)));
        assert_eq!(bucket.ask(release(9)), Outcome::Applied(Applied::Released));
        bucket.objects["prod/lock/a.json"].clone()
    };
    for op in [renew(1, None), release(1)] {
        let before = free(&mut bucket);
        granted(&bucket.ask(acquire(1)));
        bucket.behind = Some(("prod/lock/a.json".into(), before, 3));
        let outcome = bucket.with(&mut stale(), "a", op.clone());
        assert!(matches!(outcome, Outcome::Applied(_)), "{op:?}: {outcome:?}");
        bucket.behind = None;
        bucket.ask(release(1));
    }
    // Somebody else has it, or nobody: a write of the same shows that.
    granted(&bucket.ask(acquire(2)));
    let before = bucket.objects["prod/lock/a.json"].clone();
    assert!(matches!(bucket.with(&mut stale(), "a", renew(1, None)), Outcome::NotApplied(Refusal::Conflict(_))));
    let after = bucket.objects["prod/lock/a.json"].clone();
    assert!(after.0 > before.0, "it was written");
    assert_eq!(bucket.ask(renew(2, None)), Outcome::Applied(Applied::Renewed), "and is as it was");
    // What is not seen may be there.
    let outcome = bucket.with(&mut stale(), "b", release(1));
    assert!(matches!(outcome, Outcome::NotApplied(Refusal::Unavailable(_))), "{outcome:?}");
}

#[test]
fn a_completion_that_others_count_on_is_read_as_it_is() {
    let mut bucket = Bucket::new(Service::CosmosDb);
    let name = "pool#permits@";
    let key = bucket.codec().key(&Resource::new(name).unwrap()).text;
    let write = |bucket: &mut Bucket, of: u8, owner: &str| {
        let token = Token::new(granted(&bucket.with(&mut Memory::default(), name, acquire(of)))).unwrap();
        let owner = Owner::new(owner).unwrap();
        let finish = Finish { nonce: nonce(of), token, counter: token, keep: TTL, owner, about: None, quorum: None };
        let done = bucket.with(&mut Memory::default(), name, Op::Finish(Box::new(finish)));
        assert_eq!(done, Outcome::Applied(Applied::Finished));
    };
    write(&mut bucket, 1, "5");
    let before = bucket.objects[&key].clone();
    write(&mut bucket, 2, "3");
    bucket.behind = Some((key, before, 2));
    let mut memory = Memory::default();
    memory.set_may_be_stale(true);
    match bucket.with(&mut memory, name, Op::Read) {
        Outcome::Applied(Applied::Read(seen)) => assert_eq!(seen.done.unwrap().owner.as_str(), "3"),
        other => panic!("{other:?}"),
    }
}
