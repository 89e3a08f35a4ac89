//! `once --max-attempts` gives up a job that always fails.

use crate::common::{Place, Ran};

fn once(place: &Place, options: &[&str], script: &str) -> Ran {
    place.run(&[&["once", "--key", "monday"], options, &["job", "--", "sh", "-c", script]].concat())
}

#[test]
fn a_job_that_always_fails_is_given_up_until_it_is_forgotten() {
    let place = Place::new();
    let two = ["--max-attempts", "2"];
    once(&place, &two, "exit 3").expect(3);
    let failed = place.run(&["runs"]).expect(0).stdout;
    assert!(
        failed.starts_with("job@monday: failed, attempt 1 of 2, the first ") && failed.ends_with(": exit status 3\n"),
        "{failed}"
    );
    let seen = place.run(&["inspect", "job", "--key", "monday"]).expect(1).stdout;
    assert!(seen.contains("\n  attempts   failed, attempt 1 of 2, the first "), "{seen}");
    once(&place, &two, "exit 4").expect(4);
    once(&place, &two, "touch again")
        .expect(79)
        .says("given up after 2 attempts without a finish; the last one failed: exit status 4.");
    once(&place, &["--max-attempts", "2", "--given-up-status", "0"], "touch again").expect(0);
    assert!(!place.path("again").exists());
    let listed = place.run(&["runs", "--json"]).expect(0).json();
    assert_eq!((&listed["attempts"]["count"], &listed["attempts"]["given_up"]), (&2.into(), &true.into()), "{listed}");
    let forgotten = place.run(&["once", "--forget", "--key", "monday", "job"]).expect(0).stdout;
    assert_eq!(forgotten, "job@monday may be tried again; it was begun 2 times: exit status 4\n");
    place.run(&["once", "--forget", "--key", "monday", "job"]).expect(1);
    once(&place, &two, "touch again").expect(0);
    once(&place, &two, "exit 5").expect(0).says("done already");
}

#[test]
fn the_next_attempt_waits_for_its_pause() {
    let place = Place::new();
    let patient = ["--max-attempts", "2", "--retry-after", "1h"];
    once(&place, &patient, "exit 3").expect(3);
    once(&place, &patient, "touch again").expect(75).says("it has failed, and may be tried again in ");
    once(&place, &["--max-attempts", "0"], "touch again").expect(64).says("with 0 attempts the work would never begin");
    once(&place, &["--retry-after", "1h"], "touch again").expect(64);
    assert!(!place.path("again").exists());
}
