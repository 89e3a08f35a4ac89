//! Compares the rights that the samples for operators give with the commands that stores are sent: neither has more.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;

pub const ACL: &str = "docs/infra/redis.acl";
pub const TABLES: &str = "docs/infra/README.md";
pub const LISTING: &str = "docs/redis.md";
pub const POLICIES: [&str; 2] = ["docs/infra/iam-worker.json", "docs/infra/iam-admin.json"];
pub const SCAN: &str = "docs/dynamodb.md";
const REDIS: [&str; 2] = ["core/wire/src/redis/", "client/src/transport/redis/"];
const DYNAMODB: &str = "core/wire/src/dynamodb/mod.rs";
const POSTGRES: &str = "core/wire/src/postgres/";
/// Commands that every user may run, that make the connection what it is, or that are sent to Sentinels, which have rules of their own.
const NEED_NO_RULE: [&str; 5] = ["auth", "hello", "client", "ping", "sentinel"];
/// Words of `CLIENT` and `CLUSTER` that begin a list of words.
const ARGUMENTS: [&str; 2] = ["lib", "slots"];
/// The letters between the table of an insert and what it does in a conflict, at most.
const REACH: usize = 300;
/// Asked of by `CreateTable` itself, for a table with tags.
const TAGS: &str = "TagResource";

/// The commands, actions and statements that are sent, gathered from the sources.
#[derive(Default)]
pub struct Sent {
    /// Commands of Redis, with a place that sends each.
    redis: BTreeMap<String, String>,
    /// The text of all sources of Redis, in which a rule has to be of use.
    redis_text: String,
    dynamodb: BTreeSet<String>,
    /// The rights on each table of PostgreSQL.
    postgres: BTreeMap<&'static str, BTreeSet<&'static str>>,
    granted: BTreeMap<&'static str, BTreeSet<&'static str>>,
}

impl Sent {
    pub fn add(&mut self, path: &str, text: &str) {
        if path.contains("test") {
            return;
        }
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        if REDIS.iter().any(|folder| path.starts_with(folder)) {
            self.redis_text.push_str(text);
            // The doctor says itself which rights it wants.
            if !path.contains("/doctor") {
                self.redis.extend(commands(text).into_iter().map(|name| (name, path.to_owned())));
            }
        } else if path == DYNAMODB {
            let targets = text.split("\"DynamoDB_20120810.").skip(1);
            self.dynamodb.extend(targets.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
        } else if path.starts_with(POSTGRES) {
            self.add_statements(path, text);
        }
    }

    fn add_statements(&mut self, path: &str, text: &str) {
        let (is_of_items, is_schema) = (path.ends_with("/cas.rs"), path.ends_with("/schema.rs"));
        if is_schema {
            let grant = text.split_once("pub fn grant(").map_or("", |(_, grant)| grant);
            let [all, some] = ["let all = ", "GRANT SELECT, INSERT, UPDATE ON"].map(|part| verbs_of(grant, part));
            self.granted = [("locks", all.clone()), ("waiters", all), ("items", some)].into();
            return;
        }
        for (words, verb) in
            [("INSERT INTO {", "INSERT"), ("UPDATE {", "UPDATE"), ("DELETE FROM {", "DELETE"), (" FROM {", "SELECT")]
        {
            for rest in text.split(words).skip(1) {
                let table = match rest.split('}').next() {
                    Some("table") if is_of_items => "items",
                    Some("table") => "locks",
                    Some("waiters") => "waiters",
                    _ => continue,
                };
                let verbs = self.postgres.entry(table).or_default();
                verbs.insert(verb);
                if verb == "INSERT" && rest.split_once("DO UPDATE").is_some_and(|(before, _)| before.len() < REACH) {
                    verbs.insert("UPDATE");
                }
            }
        }
    }

    /// Compares with what the samples say. `page` is the text of one.
    pub fn check(&self, page: impl Fn(&str) -> String) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut add = |path: &str, message: String| {
            findings.push(Finding { path: path.to_owned(), line: 1, rule: "rights-are-used", message });
        };
        let (acl, tables) = (page(ACL), page(TABLES));
        let rules: BTreeSet<String> = [acl.as_str(), &tables, &page(LISTING)].into_iter().flat_map(rules).collect();
        for (name, path) in &self.redis {
            if !rules.contains(name) && ![&NEED_NO_RULE[..], &ARGUMENTS].concat().contains(&name.as_str()) {
                add(TABLES, format!("{path} sends {}; no sample has +{name}", name.to_uppercase()));
            }
        }
        for name in rules.iter().filter(|name| {
            !self.redis_text.contains(&name.to_uppercase()) && !self.redis_text.contains(&format!("\"{name}\""))
        }) {
            add(TABLES, format!("+{name} is given, and nothing sends {}", name.to_uppercase()));
        }
        let policies = POLICIES.map(&page).join("\n") + &page(SCAN);
        let allowed: BTreeSet<String> = policies
            .split("dynamodb:")
            .skip(1)
            .map(|rest| rest.chars().take_while(char::is_ascii_alphanumeric).collect::<String>())
            .filter(|name| name.starts_with(|first: char| first.is_ascii_uppercase()) && name != "LeadingKeys")
            .collect();
        for name in self.dynamodb.difference(&allowed) {
            add(POLICIES[0], format!("{DYNAMODB} sends {name}, and no sample allows dynamodb:{name}"));
        }
        for name in allowed.difference(&self.dynamodb).filter(|name| *name != TAGS) {
            add(POLICIES[0], format!("dynamodb:{name} is allowed, and {DYNAMODB} does not send it"));
        }
        if self.postgres != self.granted {
            add(POSTGRES, format!("statements need {:?}, and `grant` gives {:?}", self.postgres, self.granted));
        }
        findings
    }
}

/// The verbs of the grant that begins in this line.
fn verbs_of(grant: &str, part: &str) -> BTreeSet<&'static str> {
    let line = grant.lines().find(|line| line.contains(part)).unwrap_or_default();
    ["SELECT", "INSERT", "UPDATE", "DELETE"].into_iter().filter(|verb| line.contains(verb)).collect()
}

/// The commands that scripts call, and those that begin a request.
fn commands(text: &str) -> BTreeSet<String> {
    let word = |rest: &str| rest.chars().take_while(char::is_ascii_uppercase).collect::<String>();
    let called = ["redis.call('", "redis.pcall('"].into_iter().flat_map(|call| text.split(call).skip(1)).map(word);
    // `["PING"`, `[b"EVAL"`, `[&b"ZCARD"[..]`, `.push(b"EVAL")`.
    let begun = ["[\"", "[b\"", "[&b\"", "push(b\""]
        .into_iter()
        .flat_map(|begin| text.split(begin).skip(1).filter(|rest| rest.contains('"')).map(word));
    // `b"$5\r\nMULTI\r\n"`: the bytes themselves.
    let bytes = text.split("\\r\\n").filter(|word| word.chars().all(|c| c.is_ascii_uppercase())).map(str::to_owned);
    called.chain(begun).chain(bytes).filter(|name| name.len() > 2).map(|name| name.to_lowercase()).collect()
}

/// The commands of rules such as `+get` and `+pubsub|numsub`.
fn rules(page: &str) -> BTreeSet<String> {
    let given = ["`+", " +"].into_iter().flat_map(|begin| page.split(begin).skip(1));
    let named = given.map(|rest| rest.chars().take_while(char::is_ascii_lowercase).collect::<String>());
    named.filter(|name| name.len() > 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(acl: &'static str, policy: &'static str) -> impl Fn(&str) -> String {
        move |path| match path {
            ACL => acl.to_owned(),
            "docs/infra/iam-worker.json" => policy.to_owned(),
            _ => String::new(),
        }
    }

    fn sent(files: &[(&str, &str)]) -> Sent {
        let mut sent = Sent::default();
        files.iter().for_each(|(path, text)| sent.add(path, text));
        sent
    }

    fn found(files: &[(&str, &str)], acl: &'static str, policy: &'static str) -> Vec<String> {
        sent(files).check(pages(acl, policy)).into_iter().map(|finding| finding.message).collect()
    }

    const SCRIPT: (&str, &str) = ("core/wire/src/redis/a.rs", "redis.call('GET', KEYS[1]) [b\"EVAL\"");

    #[test]
    fn commands_without_a_rule_and_rules_without_a_command_are_flagged() {
        assert_eq!(found(&[SCRIPT], "-@all +get +eval", ""), [""; 0]);
        let missing = found(&[SCRIPT], " +eval", "");
        assert!(missing.len() == 1 && missing[0].contains("no sample has +get"), "{missing:?}");
        let idle = found(&[SCRIPT], " +eval +get +zrank", "");
        assert!(idle.len() == 1 && idle[0].contains("nothing sends ZRANK"), "{idle:?}");
        assert_eq!(found(&[("core/wire/src/redis/tests.rs", "[b\"KEYS\"")], "", ""), [""; 0]);
    }

    #[test]
    fn actions_of_dynamodb_are_those_that_are_sent() {
        let target = (DYNAMODB, "\"DynamoDB_20120810.GetItem\"");
        assert_eq!(found(&[target], "", "\"dynamodb:GetItem\""), [""; 0]);
        assert_eq!(found(&[target], "", "").len(), 1);
        assert_eq!(found(&[target], "", "\"dynamodb:GetItem\", \"dynamodb:PutItem\"").len(), 1);
    }

    #[test]
    fn grants_of_postgresql_are_the_verbs_of_the_statements() {
        let schema = (
            "core/wire/src/postgres/schema.rs",
            "pub fn grant(\nlet all = \"GRANT SELECT ON\"\n\"GRANT SELECT, INSERT, UPDATE ON\"",
        );
        let reads = ("core/wire/src/postgres/line.rs", "\"SELECT 1 FROM {table}\" \"SELECT 1 FROM {waiters}\"");
        let items = ("core/wire/src/postgres/cas.rs", "\"SELECT 1 FROM {table}\" INSERT INTO {table} UPDATE {table}");
        assert_eq!(found(&[schema, reads, items], "", ""), [""; 0]);
        let deletes = ("core/wire/src/postgres/statements.rs", "DELETE FROM {table}");
        assert_eq!(found(&[schema, reads, items, deletes], "", "").len(), 1);
    }
}
