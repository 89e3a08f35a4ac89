//! The waiters of this process for resources of a store.

use std::collections::hash_map::Entry;

use leasehold_core::Resource;
use leasehold_core::queue::{ClientId, Ticket};

use super::Watcher;
use crate::host::sync::{Arc, HashMap, Mutex, Weak};

/// The watchers of one store. It keeps none of them alive, and forgets those that are gone.
#[derive(Default)]
pub(super) struct Wakeups {
    watchers: Mutex<HashMap<Resource, Vec<Weak<dyn Watcher>>>>,
    /// Waiters that are notified of their turn in the queue.
    clients: Mutex<HashMap<ClientId, Weak<dyn Watcher>>>,
}

impl Wakeups {
    /// Has a client told of its turns in queues from now on, until [`Wakeups::forget`].
    pub(super) fn tell(&self, client: ClientId, watcher: &Arc<dyn Watcher>) {
        self.clients.lock().insert(client, Arc::downgrade(watcher));
    }

    pub(super) fn forget(&self, client: ClientId) {
        self.clients.lock().remove(&client);
    }

    /// Tells the one whose turn has come, if it is of this process. May be called with a driver locked.
    pub(super) fn reserved(&self, resource: &Resource, ticket: Ticket) {
        let watcher = self.clients.lock().get(&ticket.client).and_then(Weak::upgrade);
        if let Some(watcher) = watcher {
            watcher.note_reserved(resource, ticket.lock);
        }
    }

    pub(super) fn watch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>) {
        let mut watchers = self.watchers.lock();
        let those = watchers.entry(resource.clone()).or_default();
        those.retain(|other| other.strong_count() > 0);
        let known = Arc::downgrade(watcher);
        if !those.iter().any(|other| other.ptr_eq(&known)) {
            those.push(known);
        }
        drop(watchers);
        watcher.subscribed(resource);
    }

    pub(super) fn unwatch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>) {
        if let Entry::Occupied(mut entry) = self.watchers.lock().entry(resource.clone()) {
            let watcher = Arc::downgrade(watcher);
            entry.get_mut().retain(|other| !other.ptr_eq(&watcher) && other.strong_count() > 0);
            if entry.get().is_empty() {
                entry.remove();
            }
        }
    }

    /// Notifies all watchers. Call it without holding anything that a watcher could need.
    pub(super) fn released(&self, resource: &Resource) {
        let those: Vec<_> = self
            .watchers
            .lock()
            .get(resource)
            .map(|those| those.iter().filter_map(Weak::upgrade).collect())
            .unwrap_or_default();
        for watcher in those {
            watcher.released(resource);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Records its notifications.
    #[derive(Default)]
    pub(crate) struct RecordingWatcher(Mutex<Vec<String>>, Mutex<Vec<String>>);

    impl Watcher for RecordingWatcher {
        fn subscribed(&self, resource: &Resource) {
            self.1.lock().push(resource.to_string());
        }

        fn released(&self, resource: &Resource) {
            self.0.lock().push(resource.to_string());
        }
    }

    impl RecordingWatcher {
        pub(crate) fn take(&self) -> Vec<String> {
            std::mem::take(&mut self.0.lock())
        }

        pub(crate) fn subscribed(&self) -> Vec<String> {
            std::mem::take(&mut self.1.lock())
        }

        pub(crate) fn new() -> (Arc<Self>, Arc<dyn Watcher>) {
            let recording = Arc::new(Self::default());
            (recording.clone(), recording)
        }
    }

    fn name(name: &str) -> Resource {
        Resource::new(name).unwrap()
    }

    #[test]
    fn each_watcher_of_the_resource_is_notified_once() {
        let hub = Wakeups::default();
        let ((one, watch_one), (two, watch_two)) = (RecordingWatcher::new(), RecordingWatcher::new());
        hub.watch(&name("a"), &watch_one);
        hub.watch(&name("a"), &watch_one);
        hub.watch(&name("a"), &watch_two);
        hub.watch(&name("b"), &watch_two);
        hub.released(&name("a"));
        assert_eq!((one.take(), two.take()), (vec!["a".to_owned()], vec!["a".to_owned()]));
        hub.unwatch(&name("a"), &watch_one);
        hub.released(&name("a"));
        hub.released(&name("b"));
        hub.released(&name("c"));
        assert_eq!((one.take(), two.take()), (vec![], vec!["a".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn watchers_that_left_are_forgotten() {
        let hub = Wakeups::default();
        let (_one, watch_one) = RecordingWatcher::new();
        hub.watch(&name("a"), &watch_one);
        hub.unwatch(&name("a"), &watch_one);
        hub.unwatch(&name("never watched"), &watch_one);
        assert!(hub.watchers.lock().is_empty());
        for _ in 0..100 {
            let (_gone, watch) = RecordingWatcher::new();
            hub.watch(&name("a"), &watch);
        }
        assert_eq!(hub.watchers.lock()[&name("a")].len(), 1);
        hub.released(&name("a"));
    }

    #[test]
    fn a_watcher_may_unwatch_while_it_is_notified() {
        struct Leaves {
            hub: Arc<Wakeups>,
            me: Mutex<Option<Arc<dyn Watcher>>>,
        }
        impl Watcher for Leaves {
            fn subscribed(&self, _resource: &Resource) {}

            fn released(&self, resource: &Resource) {
                let me = self.me.lock().take().unwrap();
                self.hub.unwatch(resource, &me);
            }
        }
        let hub = Arc::new(Wakeups::default());
        let leaves = Arc::new(Leaves { hub: hub.clone(), me: Mutex::default() });
        let watcher: Arc<dyn Watcher> = leaves.clone();
        *leaves.me.lock() = Some(watcher.clone());
        hub.watch(&name("a"), &watcher);
        hub.released(&name("a"));
        assert!(hub.watchers.lock().is_empty());
    }
}
