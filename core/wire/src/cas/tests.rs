use super::*;

/// An item as a write leaves it, on top of another.
fn written(update: &Update) -> Item {
    let Ask::Write { new, .. } = update.ask() else { panic!("nothing is to be written") };
    new.clone()
}

/// An update that has read `item` and is about to write one byte.
fn writing(item: Option<&Item>, id: u8) -> Update {
    let mut update = Update::new(4);
    assert_eq!(update.answer(Answer::Found(item.cloned())), Next::Decide);
    update.write([id].into(), [id; 16]).unwrap();
    update
}

fn on(item: &Item, id: u8) -> Item {
    written(&writing(Some(item), id))
}

fn unknown() -> Answer {
    Answer::Failed(Outcome::Unknown(Fault::of(FaultKind::Timeout)))
}

fn refused(refusal: Refusal) -> Answer {
    Answer::Failed(Outcome::NotApplied(refusal))
}

fn denied() -> Answer {
    refused(Refusal::Denied(super::denied("no")))
}

#[test]
fn each_write_has_the_next_version_and_keeps_the_ids_of_the_last_eight() {
    let mut update = writing(None, 1);
    assert!(matches!(update.ask(), Ask::Write { seen: None, new } if new.version == 1));
    assert!(matches!(update.answer(Answer::Written), Next::Done(item) if item.value == [1]));
    let mut item = written(&writing(None, 1));
    for id in 2..=20 {
        item = on(&item, id);
    }
    assert_eq!((item.version, item.ids().count()), (20, MOST_IDS));
    assert_eq!((item.last_write(), item.ids().last()), (&*"14".repeat(16), Some(&*"0d".repeat(16))));
    assert_eq!(Item::read(Some(20), Some(item.value.clone()), Some(item.writes())), Ok(item));
}

#[test]
fn a_lost_answer_is_cleared_up_by_sending_the_same_again() {
    let mut update = writing(None, 1);
    let mut item = written(&update);
    assert_eq!(update.answer(unknown()), Next::Pause(Backoff::NORMAL, 0));
    assert_eq!(written(&update), item);
    assert!(matches!(update.clone().answer(Answer::Found(Some(item.clone()))), Next::Done(item) if item.version == 1));

    // Others have written since, on top of it.
    for id in 2..=8 {
        item = on(&item, id);
    }
    assert!(matches!(update.clone().answer(Answer::Found(Some(item.clone()))), Next::Done(item) if item.version == 1));
    item = on(&item, 9);
    let forgotten = update.answer(Answer::Found(Some(item)));
    assert!(matches!(forgotten, Next::Failed(Failure::Unknown(_))), "{forgotten:?}");
}

#[test]
fn a_store_that_shows_nothing_is_read_before_the_next_write() {
    let base = written(&writing(None, 1));
    let mut update = writing(Some(&base), 2);
    // What was refused may be a copy of what was written, which only the item can tell.
    let mut refused = update.clone();
    assert_eq!((refused.answer(Answer::Raced), refused.ask()), (Next::Ask, Ask::Read));
    let mut copied = refused.clone();
    assert!(matches!(copied.answer(Answer::Found(Some(on(&base, 2)))), Next::Done(item) if item.version == 2));
    let mut blind = refused.clone();
    assert_eq!(blind.answer(unknown()), Next::Pause(Backoff::NORMAL, 0));
    assert!(matches!(blind.answer(denied()), Next::Failed(Failure::Unknown(_))), "nobody could tell");
    assert_eq!(refused.answer(Answer::Found(Some(on(&base, 3)))), Next::Pause(Backoff::NORMAL, 0), "others were first");

    update.answer(unknown());
    assert_eq!((update.answer(Answer::Raced), update.ask()), (Next::Ask, Ask::Read));
    let ours = on(&base, 2);
    assert!(matches!(update.clone().answer(Answer::Found(Some(ours))), Next::Done(item) if item.version == 2));
    let mut other = update.clone();
    assert_eq!(other.answer(Answer::Found(Some(on(&base, 3)))), Next::Pause(Backoff::NORMAL, 1));
    assert_eq!(other.answer(Answer::Found(Some(on(&base, 3)))), Next::Decide);
    // The look itself may fail, and is repeated; the write is still in doubt.
    assert_eq!((update.answer(unknown()), update.ask()), (Next::Pause(Backoff::NORMAL, 1), Ask::Read));
    assert!(matches!(update.answer(denied()), Next::Failed(Failure::Unknown(_))));
}

#[test]
fn a_lost_answer_of_a_write_that_others_forestalled_leads_to_another_decision() {
    let base = written(&writing(None, 1));
    let mut update = writing(Some(&base), 2);
    assert_eq!(update.answer(unknown()), Next::Pause(Backoff::NORMAL, 0));
    let item = on(&on(&base, 3), 4);
    assert_eq!(update.answer(Answer::Found(Some(item.clone()))), Next::Pause(Backoff::NORMAL, 1));
    assert_eq!(update.ask(), Ask::Read);
    assert_eq!(update.answer(Answer::Found(Some(item))), Next::Decide);
    assert_eq!(update.current().map(|item| item.version), Some(3));

    // Deleted, made again, or written by somebody who keeps no ids: not the item that was read.
    let seven = "07".repeat(16);
    let strange = [seven.clone(), format!("{seven} {seven}"), String::new()];
    let strange = strange.map(|writes| Item::read(Some(3), Some([1].into()), Some(&writes)).unwrap());
    for other in strange.map(Some).into_iter().chain([None]) {
        let mut update = writing(Some(&base), 2);
        update.answer(unknown());
        assert!(matches!(update.answer(Answer::Found(other)), Next::Failed(Failure::Unknown(_))));
    }
}

#[test]
fn it_ends_after_so_many_tries_and_says_whether_it_may_have_been_written() {
    let base = written(&writing(None, 1));
    let other = on(&base, 3);
    let mut update = writing(Some(&base), 2);
    for n in 0..3 {
        assert_eq!(update.answer(Answer::Found(Some(other.clone()))), Next::Pause(Backoff::NORMAL, n));
        assert_eq!(update.answer(Answer::Found(Some(base.clone()))), Next::Decide);
        update.write([2].into(), [2; 16]).unwrap();
    }
    assert_eq!(update.answer(Answer::Raced), Next::Ask);
    assert_eq!(update.answer(Answer::Found(Some(other))), Next::Failed(Failure::Contended));
    assert_eq!(update.tries(), 4);

    let throttled = || refused(Refusal::Throttled(Fault::of(FaultKind::Busy)));
    let mut update = writing(None, 1);
    for n in 0..3 {
        assert_eq!(update.answer(throttled()), Next::Pause(Backoff::THROTTLED, n));
    }
    assert!(matches!(update.answer(throttled()), Next::Failed(Failure::Unavailable(_))));

    assert!(matches!(writing(None, 1).answer(denied()), Next::Failed(Failure::Refused(Refusal::Denied(_)))));
    let mut update = writing(None, 1);
    update.answer(unknown());
    assert!(matches!(update.answer(denied()), Next::Failed(Failure::Unknown(_))), "the first one may have arrived");
    let mut reading = Update::new(1);
    assert!(matches!(reading.answer(unknown()), Next::Failed(Failure::Unavailable(_))), "a read writes nothing");
}

#[test]
fn values_that_are_too_long_and_items_that_are_none_are_refused() {
    let mut update = Update::new(4);
    assert!(update.write(Vec::new(), [0; 16]).is_err(), "nothing was read yet");
    update.answer(Answer::Found(None));
    assert!(update.write([0].repeat(MAX_VALUE + 1), [0; 16]).is_err());
    update.write([0].repeat(MAX_VALUE), [0; 16]).unwrap();

    let id = "0f".repeat(16);
    let read = |version, value: Option<&[u8]>, writes| Item::read(version, value.map(Into::into), writes);
    assert!(read(Some(1), Some(b""), Some("")).is_ok() && read(Some(1), Some(b""), Some(&id)).is_ok());
    let nine = [id.as_str(); 9].join(" ");
    for odd in [
        read(None, Some(b""), Some("")),
        read(Some(0), Some(b""), Some("")),
        read(Some(1 << 53), Some(b""), Some("")),
        read(Some(1), None, Some("")),
        read(Some(1), Some(b""), None),
        read(Some(1), Some(b""), Some("x")),
        read(Some(1), Some(b""), Some(&nine)),
    ] {
        assert!(matches!(odd, Err(Refusal::Denied(denial)) if denial.kind == DenialKind::CorruptRecord));
    }
    let mut last = Update::new(1);
    last.answer(Answer::Found(read(Some(MAX_VERSION), Some(b""), Some("")).ok()));
    assert!(last.write(Vec::new(), [0; 16]).is_err());
}
