//! The files of AWS users, and the answers of services that give out keys.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use arbitrary::{Result, Unstructured};
use leasehold::fuzzing;
use serde_json::json;

use crate::values;

/// A string of the length and the alphabet of secret keys.
const SECRET: &str = "Hunter2/Hunter2+Hunter2/Hunter2+Hunter2/";

/// Files, command lines and addresses as text, and then a search for keys.
pub fn run(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        files(text);
        line(text);
        addresses(text);
    }
    // The run ends where the bytes end.
    let _ = searched(&mut Unstructured::new(bytes));
}

fn files(text: &str) {
    let (config, credentials) = text.split_once("\n\n").unwrap_or((text, ""));
    let Ok((profiles, shown)) = fuzzing::profiles(config, credentials) else { return };
    let values = || profiles.iter().flat_map(|(_, properties)| properties).map(|(_, value)| value);
    // Text that is long enough to be a secret is not shown, unless it is a name as well.
    let names: Vec<&String> =
        profiles.iter().flat_map(|(name, properties)| properties.iter().map(|(key, _)| key).chain([name])).collect();
    for value in values().filter(|value| value.len() >= 12 && !names.iter().any(|name| name.contains(*value))) {
        assert!(!shown.contains(&**value) || text.matches(&**value).count() > 1, "{shown}");
    }
    // Written once more, one property on each line, they say the same.
    let is_plain =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:".contains(c));
    let plain = profiles.iter().all(|(name, properties)| {
        is_plain(name)
            && properties.iter().all(|(name, value)| is_plain(name) && !name.contains('.') && is_plain(value))
    });
    if plain {
        let mut again = String::new();
        for (name, properties) in &profiles {
            again.push_str(&format!("[profile {name}]\n"));
            properties.iter().for_each(|(name, value)| again.push_str(&format!("{name} = {value}\n")));
        }
        assert_eq!(fuzzing::profiles(&again, "").map(|(profiles, _)| profiles), Ok(profiles), "{again}");
    }
}

fn line(text: &str) {
    let Ok(words) = fuzzing::command_line(text) else { return };
    assert!(!words.is_empty() && words.iter().map(String::len).sum::<usize>() <= text.len());
    let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r#"'"'"'"#))).collect();
    assert_eq!(fuzzing::command_line(&quoted.join(" ")), Ok(words));
}

/// Keys are asked of AWS over TLS, and in plain text of a machine's own addresses alone.
fn addresses(text: &str) {
    if fuzzing::is_asked_for_keys(text) {
        let lower = text.to_ascii_lowercase();
        let is_near = ["http://169.254.", "http://[", "http://127.", "http://localhost"];
        let is_aws = lower.starts_with("https://") && (lower.contains(".amazonaws.") || lower.contains(".api."));
        let known = [".sc2s.sgov.gov", ".csp.hci.ic.gov", ".c2s.ic.gov", ".cloud.adc-e.uk", ".on.aws"];
        let is_aws = is_aws || known.iter().any(|name| lower.contains(name));
        assert!(is_aws || is_near.iter().any(|start| lower.starts_with(start)), "{text}");
        assert!(!text.contains('@') || text.find('@') > text.find(['/', '?', '#'].as_slice()), "{text}");
    }
}

const CONFIG: &str = "\
[profile role]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = keys\n\
[profile keys]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = secret\n\
[profile web]\nrole_arn = arn:aws:iam::123456789012:role/r\nweb_identity_token_file = HOME/token\n\
[profile sso]\nsso_session = corp\nsso_account_id = 123456789012\nsso_role_name = r\n\
[sso-session corp]\nsso_region = eu-west-1\nsso_start_url = https://corp.awsapps.com/start\n";
/// The cached token of the session `corp`: the file is named by the SHA-1 of its name.
const SSO_FILE: &str = ".aws/sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json";

/// A home folder beside this program.
fn home() -> &'static str {
    static HOME: OnceLock<String> = OnceLock::new();
    HOME.get_or_init(|| {
        let program = std::env::current_exe().expect("a program has a path");
        let home: PathBuf = program.with_file_name("home-of-fuzzers");
        let text = home.display().to_string();
        let made = fs::create_dir_all(home.join(".aws/sso/cache"))
            .and_then(|()| fs::write(home.join(".aws/config"), CONFIG.replace("HOME", &text)))
            .and_then(|()| fs::write(home.join("token"), "a.web.token"))
            .and_then(|()| {
                let token = json!({ "accessToken": "token", "expiresAt": "2099-01-01T00:00:00Z" });
                fs::write(home.join(SSO_FILE), token.to_string())
            });
        made.expect("there is room for a few files");
        text
    })
}

fn searched(u: &mut Unstructured<'_>) -> Result<()> {
    let way = u.int_in_range(0..=4)?;
    let profile = *u.choose(&["role", "web", "sso"])?;
    let answers = values::some(u, 4, answer)?;
    let variable = move |name: &str| match (name, way) {
        ("HOME", _) => Some(home().to_owned()),
        ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", 0) => Some("/v2/credentials".to_owned()),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", 1) => Some("http://127.0.0.1:9/keys".to_owned()),
        _ => None,
    };
    let named = if way >= 3 { Some(profile) } else { None };
    match fuzzing::keys(named, variable, answers.clone()) {
        Ok(found) => {
            let said: Vec<u8> = answers.into_iter().flat_map(|(_, body)| body).collect();
            assert!(!said.is_empty(), "keys from nobody");
            for part in &found.parts {
                assert!(!part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic()), "{part:?}");
                assert!(part.len() < 8 || !found.shown.contains(&**part), "{}", found.shown);
            }
        }
        Err(said) => {
            assert!(!said.contains(SECRET), "{said}");
            assert!(!said.chars().any(char::is_control), "{said:?}");
        }
    }
    Ok(())
}

/// An answer of such a service. The secret stands where keys do.
fn answer(u: &mut Unstructured<'_>) -> Result<(u16, Vec<u8>)> {
    let status = *u.choose(&[200, 200, 200, 200, 400, 403, 404, 500])?;
    let expires = *u.choose(&["2099-01-01T00:00:00Z", "1999-01-01T00:00:00Z", "soon", ""])?;
    let id = *u.choose(&["ASIAEXAMPLE", "", "a b", "é"])?;
    let body = match u.int_in_range(0..=6)? {
        0 => "an-imds-token-or-the-name-of-a-role".to_owned(),
        1 | 2 => json!({
            "Code": *u.choose(&["Success", "AssumeRoleUnauthorizedAccess"])?,
            "AccessKeyId": id,
            "SecretAccessKey": SECRET,
            "Token": SECRET,
            "Expiration": expires,
        })
        .to_string(),
        3 => json!({ "roleCredentials": {
            "accessKeyId": id, "secretAccessKey": SECRET, "sessionToken": SECRET, "expiration": values::number(u)?,
        } })
        .to_string(),
        4 => {
            let action = *u.choose(&["AssumeRole", "AssumeRoleWithWebIdentity"])?;
            format!(
                "<{action}Response><{action}Result><Credentials><AccessKeyId>{id}</AccessKeyId><SecretAccessKey>{SECRET}\
                 </SecretAccessKey><SessionToken>{SECRET}</SessionToken><Expiration>{expires}</Expiration></Credentials>\
                 </{action}Result></{action}Response>"
            )
        }
        _ => return Ok((status, values::bytes(u, 300)?)),
    };
    let mut body = body.into_bytes();
    if values::chance(u, 80) {
        // A byte that is another, or an end that is missing.
        let at = u.choose_index(body.len())?;
        body[at] = u.arbitrary()?;
        if u.arbitrary()? {
            body.truncate(at);
        }
    }
    Ok((status, body))
}
