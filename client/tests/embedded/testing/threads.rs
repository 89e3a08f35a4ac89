//! Threads that share a test clock.

use super::two;

#[test]
fn a_thread_waits_for_a_callback_that_another_thread_runs() {
    let (clock, client, _rival) = two();
    let (began, has_begun) = std::sync::mpsc::channel();
    let (go_on, gate) = std::sync::mpsc::channel::<()>();
    let election = client.elect("leader").on_start(move |_| {
        began.send(()).unwrap();
        gate.recv().unwrap();
    });
    let election = election.start().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| clock.settle());
        has_begun.recv().unwrap();
        let resigning = scope.spawn(|| election.resign().unwrap());
        go_on.send(()).unwrap();
        resigning.join().unwrap();
    });
    assert!(client.lock("leader").try_acquire().unwrap().is_some());
}
