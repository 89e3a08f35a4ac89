//! Pages of the locks of the table, in the order of their names.

use alloc::string::{String, ToString};

use leasehold_core::Resource;
use leasehold_core::op::Outcome;

use super::exchange::misfit;
use super::{Answer, Codec, Field, Param, Statement};
use crate::listing::{PAGE, Page, Which};

impl Codec {
    /// Asks for a page of the names that begin with `prefix`; [`Codec::listed`] reads the answer. `after` is empty for
    /// the first page. It reads the index of the names, and locks nothing.
    pub fn list(&self, prefix: &str, after: &[u8], which: Which) -> Statement {
        // What comes back is what an earlier page has left.
        let after = String::from_utf8_lossy(after);
        let after = if after.is_empty() { prefix } else { &*after };
        let text = |text: &str| Param::Text(Some(text.to_string()));
        let list = match which {
            Which::Held => &self.texts.list,
            Which::Runs => &self.texts.list_runs,
        };
        Statement::new(list, [text(after), text(prefix), Param::Int8(PAGE.into())])
    }

    /// Reads the answer to [`Codec::list`].
    ///
    /// # Errors
    /// The table could not be read.
    pub fn listed(&self, prefix: &str, answer: Answer) -> Result<Page, Outcome> {
        let rows = answer?;
        let mut page = Page::default();
        for row in &rows {
            let [Field::Text(name), Field::Bool(is_shown)] = row.as_slice() else { return Err(misfit()) };
            page.next = (rows.len() == PAGE as usize).then(|| name.clone().into_bytes());
            if !name.starts_with(prefix) {
                return Ok(Page { next: None, ..page });
            }
            page.records.extend(Resource::new(name).ok().filter(|_| *is_shown).map(|name| (name, None)));
        }
        Ok(page)
    }
}
