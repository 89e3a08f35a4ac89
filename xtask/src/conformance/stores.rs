//! The abilities of stores, read from the suite of `client/tests/conformance`: its lists are what the compiler makes
//! tests of, so that nothing is shown that does not run.

use std::collections::BTreeMap;

const SUITE: &str = "main.rs";
/// Where stores have all behaviours in one test.
const TOGETHER: &str = "on_tables.rs";

/// Stores, behaviours, and what some stores lack.
#[derive(Debug, PartialEq, Eq)]
pub struct Stores {
    pub stores: Vec<Store>,
    pub behaviours: Vec<Behaviour>,
    pub abilities: Vec<Ability>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Store {
    pub name: String,
    pub title: String,
    pub abilities: Vec<String>,
    /// One test has all its behaviours.
    pub together: bool,
    /// The abilities that it lacks, and why.
    pub lacks: BTreeMap<String, Lack>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Lack {
    /// Nothing that depends on it is offered, not even in another way.
    pub is_refused: bool,
    pub why: String,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Behaviour {
    pub topic: String,
    pub name: String,
    /// The abilities that it asks for.
    pub asks: Vec<String>,
}

/// One of `Can`.
#[derive(Debug, PartialEq, Eq)]
pub struct Ability {
    pub name: String,
    pub what: String,
}

impl Stores {
    /// From the titles and reasons in `words`, and the files of the suite.
    ///
    /// # Errors
    /// Two parts that do not fit together.
    pub fn read(words: &str, file: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let read = |name: &str| file(name).ok_or_else(|| format!("the suite has no {name}"));
        let (suite, together) = (read(SUITE)?, read(TOGETHER)?);
        let abilities = abilities(&suite)?;
        let mut behaviours = Vec::new();
        for (topic, name) in listed(&suite)? {
            let text = read(&format!("{topic}.rs"))?;
            let body = between(&text, &format!("fn {name}("), "\n}\n");
            let body = body.ok_or_else(|| format!("{topic}.rs has no {name}"))?;
            let mut asks = asked(body);
            asks.extend(helpers(&suite).filter(|(call, _)| body.contains(call)).flat_map(|(_, asks)| asks));
            asks.dedup();
            behaviours.push(Behaviour { topic, name, asks });
        }
        let words = Words::read(words)?;
        let mut stores = Vec::new();
        for (name, together) in names(&suite, &together) {
            let body = between(&suite, &format!("fn {name}("), "\n    }\n");
            let body = body.ok_or_else(|| format!("{SUITE} does not say what {name} is"))?;
            stores.push(words.store(name, together, asked(body), &abilities)?);
        }
        words.all_used(&stores)?;
        Ok(Self { stores, behaviours, abilities })
    }

    /// The names of all tests, as they are reported.
    pub fn tests(&self) -> Vec<String> {
        let of_store = |store: &Store| match store.together {
            true => vec![format!("on_tables::{}", store.name)],
            false => self.behaviours.iter().map(|behaviour| format!("{}::{}", store.name, behaviour.name)).collect(),
        };
        self.stores.iter().flat_map(of_store).collect()
    }
}

/// The words of a list: `store NAME TITLE`, and `lack NAME ABILITY [refused] WHY`.
#[derive(Default)]
struct Words {
    titles: BTreeMap<String, String>,
    lacks: BTreeMap<(String, String), (bool, String)>,
}

impl Words {
    fn read(text: &str) -> Result<Self, String> {
        let mut words = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let unreadable = || format!("`{line}` is neither `store NAME TITLE` nor `lack NAME ABILITY [refused] WHY`");
            let (kind, rest) = line.split_once(' ').ok_or_else(unreadable)?;
            let (store, rest) = rest.split_once(' ').ok_or_else(unreadable)?;
            match kind {
                "store" => drop(words.titles.insert(store.to_owned(), rest.to_owned())),
                "lack" => {
                    let (ability, why) = rest.split_once(' ').ok_or_else(unreadable)?;
                    let refused = why.strip_prefix("refused ");
                    let lack = (refused.is_some(), refused.unwrap_or(why).to_owned());
                    words.lacks.insert((store.to_owned(), ability.to_owned()), lack);
                }
                _ => return Err(unreadable()),
            }
        }
        Ok(words)
    }

    fn store(&self, name: String, together: bool, can: Vec<String>, abilities: &[Ability]) -> Result<Store, String> {
        let title = self.titles.get(&name).ok_or_else(|| format!("`store {name} TITLE` is missing"))?.clone();
        let mut lacks = BTreeMap::new();
        for ability in abilities.iter().filter(|ability| !can.contains(&ability.name)) {
            let told = self.lacks.get(&(name.clone(), ability.name.clone()));
            let (is_refused, why) =
                told.ok_or_else(|| format!("`lack {name} {} WHY` is missing", ability.name))?.clone();
            lacks.insert(ability.name.clone(), Lack { is_refused, why });
        }
        Ok(Store { name, title, abilities: can, together, lacks })
    }

    /// A remark about an unknown store is a mistake.
    fn all_used(&self, stores: &[Store]) -> Result<(), String> {
        let store = |name: &str| stores.iter().find(|store| store.name == name);
        if let Some(name) = self.titles.keys().find(|name| store(name).is_none()) {
            return Err(format!("the suite has no store `{name}`"));
        }
        let superfluous =
            |(name, ability): &&(String, String)| !store(name).is_some_and(|store| store.lacks.contains_key(ability));
        match self.lacks.keys().find(superfluous) {
            Some((name, ability)) => Err(format!("the suite says nothing of a store `{name}` that lacks `{ability}`")),
            None => Ok(()),
        }
    }
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    Some(rest.split_once(end).map_or(rest, |(body, _)| body))
}

/// Those with a test for each behaviour, then those with one for all of them.
fn names(suite: &str, together: &str) -> Vec<(String, bool)> {
    let apart =
        suite.split("\nsuite!(").skip(1).flat_map(|call| call.split(')').next().unwrap_or_default().split_whitespace());
    let after = |place: &'static str| together.split(place).skip(1).filter_map(|rest| rest.split(['(', ')']).next());
    let mut names: Vec<_> = apart.map(|name| (name.to_owned(), false)).collect();
    names.extend(after("Store::").map(|name| (name.to_owned(), true)));
    names
}

fn listed(suite: &str) -> Result<Vec<(String, String)>, String> {
    let list = between(suite, "macro_rules! behaviours {", "\n}\n").ok_or("the suite has no list of behaviours")?;
    let is_name = |word: &str| word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let pairs = list.split_whitespace().filter_map(|word| word.split_once("::"));
    let listed: Vec<_> = pairs
        .filter(|(topic, name)| is_name(topic) && is_name(name))
        .map(|(topic, name)| (topic.to_owned(), name.to_owned()))
        .collect();
    if listed.is_empty() { Err("the suite lists no behaviours".to_owned()) } else { Ok(listed) }
}

fn abilities(suite: &str) -> Result<Vec<Ability>, String> {
    let list = between(suite, "enum Can {", "\n}\n").ok_or("the suite does not say what stores can do")?;
    let mut what = String::new();
    let mut abilities = Vec::new();
    for line in list.lines().map(str::trim) {
        if let Some(said) = line.strip_prefix("///") {
            what.push_str(said);
        } else if let Some(name) = line.strip_suffix(',') {
            abilities.push(Ability { name: name.to_owned(), what: std::mem::take(&mut what).trim().to_owned() });
        }
    }
    Ok(abilities)
}

/// Calls of a store's methods that look at what it can do, and at what of it.
fn helpers(suite: &str) -> impl Iterator<Item = (String, Vec<String>)> {
    let methods = suite.split("\n    pub(crate) fn ").skip(1).filter_map(|rest| {
        let (name, body) = rest.split_once('(')?;
        let asks = asked(body.split("\n    }\n").next()?);
        Some((format!("store.{name}("), asks))
    });
    methods.filter(|(_, asks)| !asks.is_empty())
}

/// The abilities that a piece of code names, each once.
fn asked(code: &str) -> Vec<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let mut found: Vec<String> = Vec::new();
    for rest in code.split("Can::").skip(1) {
        let name = rest.split(|c| !is_word(c)).next().unwrap_or_default().to_owned();
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUITE_TEXT: &str = "
pub(crate) enum Can {
    /// Wakes those
    /// who wait.
    Wake,
    /// Is shared.
    Share,
}

impl Store {
    fn a() -> Self {
        Self { can: &[Can::Wake, Can::Share] }
    }

    fn b(server: &S) -> Self {
        Self { can: &[Can::Wake] }
    }

    pub(crate) fn expect_shared(&self) {
        assert!(self.can(Can::Share));
    }
}

macro_rules! behaviours {
    ($macro:ident) => {
        $macro! {
            t::one
            t::two
        }
    };
}

suite!(a);
";

    fn read(words: &str) -> Result<Stores, String> {
        Stores::read(words, |file| {
            let text = match file {
                "main.rs" => SUITE_TEXT,
                "on_tables.rs" => "behaviour(&Store::b(&server))",
                "t.rs" => "fn one(s) {\n    store.expect_shared();\n}\n\nfn two(s) {\n    if s.can(Can::Share) {}\n}\n",
                _ => return None,
            };
            Some(text.to_owned())
        })
    }

    #[test]
    fn the_suite_says_who_does_what() {
        let stores = read("store a A\nstore b The b\nlack b Share refused it is alone\n").expect("it fits");
        assert_eq!(stores.tests(), ["a::one", "a::two", "on_tables::b"]);
        assert_eq!(stores.abilities[0], Ability { name: "Wake".into(), what: "Wakes those who wait.".into() });
        assert_eq!(stores.behaviours[0].asks, ["Share"], "through a method");
        assert_eq!(stores.behaviours[1].asks, ["Share"]);
        let lack = Lack { is_refused: true, why: "it is alone".into() };
        assert_eq!(stores.stores[1].lacks, BTreeMap::from([("Share".to_owned(), lack)]));
    }

    #[test]
    fn what_is_missing_or_superfluous_is_named() {
        for (words, said) in [
            ("store a A\nstore b B", "`lack b Share WHY` is missing"),
            ("store a A\nlack b Share no", "`store b TITLE` is missing"),
            ("store a A\nstore b B\nlack b Share no\nlack a Share no", "nothing of a store `a` that lacks `Share`"),
            ("store a A\nstore b B\nlack b Share no\nstore c C", "no store `c`"),
            ("stores a A", "is neither"),
        ] {
            let found = read(words).expect_err(words);
            assert!(found.contains(said), "{words}: {found}");
        }
    }
}
