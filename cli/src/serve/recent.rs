//! Things that the daemon remembers of each client, up to a number: the newest stay.

use std::collections::{HashMap, VecDeque};

/// Things by client and name. No client pushes out what another one has.
pub(super) struct Recent<T> {
    most: usize,
    of_client: HashMap<String, Things<T>>,
}

struct Things<T> {
    /// The oldest first.
    order: VecDeque<String>,
    by_name: HashMap<String, T>,
}

impl<T> Recent<T> {
    /// At most so many of each client.
    pub(super) fn new(most: usize) -> Self {
        Self { most: most.max(1), of_client: HashMap::new() }
    }

    pub(super) fn get(&self, client: &str, name: &str) -> Option<&T> {
        self.of_client.get(client)?.by_name.get(name)
    }

    pub(super) fn get_mut(&mut self, client: &str, name: &str) -> Option<&mut T> {
        self.of_client.get_mut(client)?.by_name.get_mut(name)
    }

    /// Remembers a thing under a new name, in place of the oldest one that `may_go` where there are too many.
    pub(super) fn put(&mut self, client: &str, name: String, thing: T, may_go: impl Fn(&T) -> bool) {
        let things = self
            .of_client
            .entry(client.to_owned())
            .or_insert_with(|| Things { order: VecDeque::new(), by_name: HashMap::new() });
        if things.order.len() >= self.most {
            let oldest = things.order.iter().position(|name| things.by_name.get(name).is_none_or(&may_go));
            if let Some(name) = oldest.and_then(|oldest| things.order.remove(oldest)) {
                things.by_name.remove(&name);
            }
        }
        things.order.push_back(name.clone());
        things.by_name.insert(name, thing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_that_may_go_makes_room_and_only_for_its_own_client() {
        let mut recent = Recent::new(3);
        recent.put("bob", "b".to_owned(), 0, |_| true);
        for number in 1..=5 {
            // The first has to stay.
            recent.put("alice", number.to_string(), number, |number| *number != 1);
        }
        let left: Vec<_> = (1..=5).filter(|number| recent.get("alice", &number.to_string()).is_some()).collect();
        assert_eq!(left, [1, 4, 5]);
        assert_eq!(recent.get("bob", "b"), Some(&0));
        assert_eq!(recent.get("bob", "1"), None);
    }
}
