//! Several threads queue jobs for one thread, which the first job starts.

use std::sync::{Arc, Mutex};

use leasehold_concurrency::internals::Worker;
use leasehold_scheduler::sync::thread;
use leasehold_scheduler::world::{Time, explore, settle};

#[test]
fn every_job_runs_once_and_in_order_on_one_thread() {
    explore(Time::Stands, &[], || {
        let (worker, done) = (Arc::new(Worker::new()), Arc::new(Mutex::new(Vec::new())));
        let givers: Vec<_> = (0..2)
            .map(|giver| (giver, Arc::clone(&worker), Arc::clone(&done)))
            .map(|(giver, worker, done)| {
                thread::spawn(move || {
                    for n in 0..3 {
                        let done = Arc::clone(&done);
                        worker.queue(giver * 10 + n, move |job| {
                            done.lock().unwrap().push((job, thread::current().id()));
                        });
                    }
                })
            })
            .collect();
        givers.into_iter().for_each(|giver| giver.join().unwrap());
        drop(worker);
        // What is queued is done before the thread ends.
        settle();
        let done = done.lock().unwrap();
        for giver in 0..2 {
            let jobs: Vec<_> = done.iter().map(|(job, _)| *job).filter(|job| job / 10 == giver).collect();
            assert_eq!(jobs, [giver * 10, giver * 10 + 1, giver * 10 + 2]);
        }
        assert!(done.iter().all(|(_, thread)| *thread == done[0].1), "there was a second thread");
    });
}
