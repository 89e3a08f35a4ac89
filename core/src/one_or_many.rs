//! A list that keeps a single item in place. A single store is the common case, and its lists need no allocation.

use alloc::vec::{self, Vec};
use core::fmt;
use core::hash::{Hash, Hasher};
use core::iter::FusedIterator;
use core::ops::{Deref, DerefMut};

/// A list that allocates memory only for its second item. It is read as a slice.
#[derive(Clone)]
pub struct OneOrMany<T>(Items<T>);

#[derive(Clone)]
enum Items<T> {
    One(T),
    /// Any other number of items. It has no memory of its own before the second.
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    /// An empty list.
    pub const fn new() -> Self {
        Self(Items::Many(Vec::new()))
    }

    /// A list of one item.
    pub const fn one(item: T) -> Self {
        Self(Items::One(item))
    }

    /// Appends an item.
    pub fn push(&mut self, item: T) {
        match &mut self.0 {
            Items::Many(items) if items.capacity() == 0 => self.0 = Items::One(item),
            Items::Many(items) => items.push(item),
            Items::One(_) => {
                let mut items = Vec::with_capacity(4);
                items.extend(core::mem::take(self));
                items.push(item);
                self.0 = Items::Many(items);
            }
        }
    }

    /// Removes the item at a position, and returns it.
    ///
    /// # Panics
    /// If there is none, as [`Vec::remove`] does.
    pub fn remove(&mut self, at: usize) -> T {
        match core::mem::replace(&mut self.0, Items::Many(Vec::new())) {
            Items::One(item) => {
                assert_eq!(at, 0, "there is one item");
                item
            }
            Items::Many(mut items) => {
                let item = items.remove(at);
                self.0 = Items::Many(items);
                item
            }
        }
    }
}

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for OneOrMany<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            Items::One(item) => core::slice::from_ref(item),
            Items::Many(items) => items,
        }
    }
}

impl<T> DerefMut for OneOrMany<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Items::One(item) => core::slice::from_mut(item),
            Items::Many(items) => items,
        }
    }
}

impl<T> From<Vec<T>> for OneOrMany<T> {
    fn from(items: Vec<T>) -> Self {
        Self(Items::Many(items))
    }
}

impl<T> FromIterator<T> for OneOrMany<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut items = items.into_iter();
        let Some(first) = items.next() else { return Self::new() };
        let Some(second) = items.next() else { return Self::one(first) };
        let mut many = Vec::with_capacity(items.size_hint().0.saturating_add(2));
        many.extend([first, second]);
        many.extend(items);
        Self(Items::Many(many))
    }
}

impl<T> IntoIterator for OneOrMany<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(match self.0 {
            Items::One(item) => Rest::One(Some(item)),
            Items::Many(items) => Rest::Many(items.into_iter()),
        })
    }
}

/// The items of a list, in their order.
#[derive(Clone, Debug)]
pub struct IntoIter<T>(Rest<T>);

#[derive(Clone, Debug)]
enum Rest<T> {
    One(Option<T>),
    Many(vec::IntoIter<T>),
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match &mut self.0 {
            Rest::One(item) => item.take(),
            Rest::Many(items) => items.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Rest::One(item) => (usize::from(item.is_some()), Some(usize::from(item.is_some()))),
            Rest::Many(items) => items.size_hint(),
        }
    }
}

impl<T> ExactSizeIterator for IntoIter<T> {}
impl<T> FusedIterator for IntoIter<T> {}

impl<'a, T> IntoIterator for &'a OneOrMany<T> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut OneOrMany<T> {
    type Item = &'a mut T;
    type IntoIter = core::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

// Two lists are equal if their items are, however they are kept.
impl<T: PartialEq> PartialEq for OneOrMany<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for OneOrMany<T> {}

impl<T: Hash> Hash for OneOrMany<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<T: fmt::Debug> fmt::Debug for OneOrMany<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(feature = "serde")]
impl<T: serde::Serialize> serde::Serialize for OneOrMany<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

#[cfg(feature = "serde")]
impl<'de, T: serde::Deserialize<'de>> serde::Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: u32) -> OneOrMany<u32> {
        (0..count).collect()
    }

    #[test]
    fn items_stand_in_the_order_in_which_they_came() {
        let mut pushed = OneOrMany::new();
        for count in 0..4 {
            let expected: Vec<u32> = (0..count).collect();
            assert_eq!((&*pushed, &*of(count)), (&*expected, &*expected));
            assert_eq!(of(count).into_iter().collect::<Vec<_>>(), expected);
            pushed.push(count);
        }
    }

    #[test]
    fn lists_are_equal_if_their_items_are() {
        let mut emptied = of(1);
        assert_eq!(emptied.remove(0), 0);
        let mut refilled = of(3);
        assert_eq!((refilled.remove(2), refilled.remove(1)), (2, 1));
        assert_eq!((emptied, refilled), (OneOrMany::new(), of(1)));
        assert_ne!(of(1), of(2));
    }

    #[test]
    #[should_panic(expected = "there is one item")]
    fn an_item_behind_the_last_cannot_be_removed() {
        of(1).remove(1);
    }

    #[test]
    fn a_single_item_can_be_changed_in_place() {
        let mut list = of(1);
        list[0] = 7;
        list.iter_mut().for_each(|item| *item += 1);
        assert_eq!(list, OneOrMany::one(8));
    }
}
