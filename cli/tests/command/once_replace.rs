//! `once --replace` takes a job over from the client that runs it.

use crate::common::Place;

#[test]
fn the_newest_start_takes_the_job_over() {
    let place = Place::new();
    let job = |options: &'static [&'static str], script: &'static str| {
        [&["once", "--key", "live", "--ttl", "3s"], options, &["deploy", "--", "sh", "-c", script]].concat()
    };
    let former = place.start(&job(&[], "touch began; exec sleep 600"));
    place.wait_for_file_exists("began");
    place.run(&job(&["--replace"], "touch newest")).expect(0);
    former.wait().expect(76).says("revoked");
    assert!(place.path("newest").exists());
    place.run(&job(&["--replace"], "touch again")).expect(0).says("done already");
    assert!(!place.path("again").exists(), "it was done before this start");
    place.run(&job(&["--replace", "--max-attempts", "2"], "touch")).expect(64);
    place.run(&job(&["--replace", "--wait", "0s"], "touch again")).expect(64).says("give a wait above zero");
    place.run(&job(&["--replace", "--even-if-done"], "touch again")).expect(0);
    assert!(place.path("again").exists());
}
