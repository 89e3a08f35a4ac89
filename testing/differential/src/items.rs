//! Items of compare-and-set, beside the locks: what clients have read of them, and what has to be there.

use std::collections::BTreeMap;

use leasehold_wire::cas::{Answer, Ask, Item, MOST_IDS};

use crate::compare::{self, Difference, Fields, Value};
use crate::run::Side;

/// The items as they have to be, and the two views of each client: of the store, whose items have tags of its own, and of
/// the reference.
#[derive(Clone, Debug, Default)]
pub(crate) struct Items {
    items: BTreeMap<u8, Item>,
    seen: BTreeMap<(u8, u8), Views>,
    sent: BTreeMap<u32, (u8, u8, Write)>,
}

#[derive(Clone, Debug, Default)]
struct Views {
    store: Option<Item>,
    reference: Option<Item>,
}

#[derive(Clone, Debug)]
struct Write {
    seen: Views,
    store: Item,
    reference: Item,
}

/// The part that differs, and how.
pub(crate) type Wrong = (&'static str, Vec<Difference>);

impl Items {
    /// A client reads the item.
    pub(crate) fn read(&mut self, side: &mut dyn Side, name: u8, client: u8) -> Result<(), Wrong> {
        let Some(answer) = side.item(name, client, Ask::Read) else { return Ok(()) };
        let reference = self.items.get(&name).cloned();
        let (shown, wanted) = (fields(&answer), fields(&Answer::Found(reference.clone())));
        let store = if let Answer::Found(item) = answer { item } else { None };
        self.seen.insert((name, client), Views { store, reference });
        same("the item", &shown, &wanted)
    }

    /// A client writes the item as it follows from what it has read last. `id` is that of the step.
    pub(crate) fn write(
        &mut self,
        side: &mut dyn Side,
        name: u8,
        client: u8,
        id: u32,
        value: &[u8],
    ) -> Result<(), Wrong> {
        let seen = self.seen.get(&(name, client)).cloned().unwrap_or_default();
        let (store, reference) = (next(seen.store.as_ref(), id, value), next(seen.reference.as_ref(), id, value));
        self.sent.insert(id, (name, client, Write { seen, store, reference }));
        self.again(side, id)
    }

    /// The write of an earlier step, late or a second time.
    pub(crate) fn again(&mut self, side: &mut dyn Side, of: u32) -> Result<(), Wrong> {
        let Some((name, client, write)) = self.sent.get(&of).cloned() else { return Ok(()) };
        let ask = Ask::Write { seen: write.seen.store.as_ref(), new: &write.store };
        let Some(answer) = side.item(name, client, ask) else { return Ok(()) };
        let found = match answer {
            // As a client looks, who has to know.
            Answer::Raced => side.item(name, client, Ask::Read).unwrap_or(Answer::Raced),
            answer => answer,
        };
        let expected = match self.items.get(&name) {
            item if item == write.seen.reference.as_ref() => {
                self.items.insert(name, write.reference.clone());
                Answer::Written
            }
            item => Answer::Found(item.cloned()),
        };
        same("the answer", &written(&found, &write.store), &written(&expected, &write.reference))?;
        // By another client, and none that goes on from it.
        let Some(read) = side.item(name, 1 - client, Ask::Read) else { return Ok(()) };
        same("the item after it", &fields(&read), &fields(&Answer::Found(self.items.get(&name).cloned())))
    }
}

fn same(part: &'static str, shown: &Fields, wanted: &Fields) -> Result<(), Wrong> {
    let differences = compare::differences(shown, wanted, std::time::Duration::ZERO);
    if differences.is_empty() { Ok(()) } else { Err((part, differences)) }
}

fn next(seen: Option<&Item>, id: u32, value: &[u8]) -> Item {
    let id = format!("{id:032x}");
    let before = seen.map(Item::writes).unwrap_or_default().split_whitespace();
    let writes: Vec<_> = [id.as_str()].into_iter().chain(before).take(MOST_IDS).collect();
    let version = seen.map_or(0, |item| item.version) + 1;
    Item::read(Some(version), Some(value.to_vec()), Some(&writes.join(" "))).expect("a good item")
}

/// To its client, a write that came through before is one that comes through now.
fn written(answer: &Answer, new: &Item) -> Fields {
    let has = |item: &Item| item.writes().split_whitespace().any(|id| id == new.last_write());
    match answer {
        Answer::Found(Some(item)) if has(item) => fields(&Answer::Written),
        answer => fields(answer),
    }
}

fn fields(answer: &Answer) -> Fields {
    let mut fields = Fields::new();
    let ended = match answer {
        Answer::Written => "written".to_owned(),
        Answer::Raced => "raced".to_owned(),
        Answer::Failed(outcome) => return compare::outcome(outcome),
        Answer::Found(None) => "no item".to_owned(),
        Answer::Found(Some(item)) => {
            fields.insert("item version", Value::Number(item.version));
            fields.insert("item value", Value::Text(format!("{:?}", item.value)));
            fields.insert("item writes", Value::Text(item.writes().to_owned()));
            "an item".to_owned()
        }
    };
    fields.insert("outcome", Value::Text(ended));
    fields
}
