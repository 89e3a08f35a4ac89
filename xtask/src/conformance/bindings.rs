//! The abilities of bindings, from a list in which each "yes" names the test that shows it, and each "no" says why.

use crate::named::Named;

/// Bindings, and what they are asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Bindings {
    pub bindings: Vec<(String, String)>,
    pub sections: Vec<Section>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Section {
    pub title: String,
    pub abilities: Vec<Ability>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Ability {
    pub what: String,
    /// One for each binding, in their order.
    pub answers: Vec<Answer>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Yes(Named),
    No(String),
}

impl Bindings {
    /// Reads lines: `binding NAME TITLE`, `= SECTION`, `- ABILITY`, and below an ability one line for each binding, which is
    /// `NAME PATH::TEST` or `NAME no WHY`. Several bindings with the same answer stand before it, with commas.
    ///
    /// # Errors
    /// A line is wrong, or an answer is missing.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut bindings: Vec<(String, String)> = Vec::new();
        let mut sections: Vec<Section> = Vec::new();
        let mut open: Option<(String, Vec<Option<Answer>>)> = None;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let unreadable = || format!("`{line}` cannot be read");
            let (word, rest) = line.split_once(' ').ok_or_else(unreadable)?;
            if ["=", "-"].contains(&word) {
                close(&mut open, &mut sections, &bindings)?;
            }
            match word {
                "binding" => {
                    let (name, title) = rest.split_once(' ').ok_or_else(unreadable)?;
                    bindings.push((name.to_owned(), title.trim().to_owned()));
                }
                "=" => sections.push(Section { title: rest.to_owned(), abilities: Vec::new() }),
                "-" => open = Some((rest.to_owned(), vec![None; bindings.len()])),
                names => {
                    let (what, answers) = open.as_mut().ok_or_else(unreadable)?;
                    for name in names.split(',') {
                        let at = bindings.iter().position(|(known, _)| known == name).ok_or_else(unreadable)?;
                        if answers[at].replace(answer(rest).ok_or_else(unreadable)?).is_some() {
                            return Err(format!("`{what}` has two answers of {name}"));
                        }
                    }
                }
            }
        }
        close(&mut open, &mut sections, &bindings)?;
        Ok(Self { bindings, sections })
    }

    /// Every test that is named.
    pub fn tests(&self) -> impl Iterator<Item = &Named> {
        let answers = self.sections.iter().flat_map(|section| &section.abilities).flat_map(|ability| &ability.answers);
        answers.filter_map(|answer| match answer {
            Answer::Yes(test) => Some(test),
            Answer::No(_) => None,
        })
    }
}

fn answer(text: &str) -> Option<Answer> {
    match text.strip_prefix("no ") {
        Some(why) => Some(Answer::No(why.trim().to_owned())),
        None => Named::parse(text).map(Answer::Yes),
    }
}

fn close(
    open: &mut Option<(String, Vec<Option<Answer>>)>,
    sections: &mut [Section],
    bindings: &[(String, String)],
) -> Result<(), String> {
    let Some((what, answers)) = open.take() else { return Ok(()) };
    if let Some(missing) = answers.iter().position(Option::is_none) {
        return Err(format!("`{what}` has no answer of {}", bindings[missing].0));
    }
    let section = sections.last_mut().ok_or_else(|| format!("`{what}` stands in no section"))?;
    section.abilities.push(Ability { what, answers: answers.into_iter().flatten().collect() });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# A list.\nbinding a A one\nbinding b B\n\n= Locks\n";

    #[test]
    fn a_list_is_read() {
        let read = Bindings::read(&format!(
            "{HEAD}- to wait\n  a x/y.rs::waits\n  b no it never does\n- both\n  a,b no why\n"
        ));
        let read = read.expect("a good list");
        assert_eq!(read.bindings[0], ("a".to_owned(), "A one".to_owned()));
        let [waits, both] = &read.sections[0].abilities[..] else { panic!("{read:?}") };
        assert_eq!(waits.answers[1], Answer::No("it never does".into()));
        assert_eq!(both.answers, [Answer::No("why".into()), Answer::No("why".into())]);
        assert_eq!(read.tests().map(|test| test.name.as_str()).collect::<Vec<_>>(), ["waits"]);
    }

    #[test]
    fn what_is_missing_or_odd_is_named() {
        for (rest, said) in [
            ("- x\n  a no why\n", "`x` has no answer of b"),
            ("- x\n  a no why\n- y\n", "`x` has no answer of b"),
            ("- x\n  a no why\n  a no why\n", "two answers of a"),
            ("- x\n  c no why\n", "cannot be read"),
            ("- x\n  a perhaps\n", "cannot be read"),
            ("a no why\n", "cannot be read"),
        ] {
            let found = Bindings::read(&format!("{HEAD}{rest}")).expect_err(rest);
            assert!(found.contains(said), "{rest}: {found}");
        }
    }
}
