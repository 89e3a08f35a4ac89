use super::*;

/// Variables, and what stands in `~/.aws/config`.
fn parse(text: &str, variables: &[(&'static str, &str)], config: &str) -> Result<DynamodbUrl, String> {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".aws")).unwrap();
    std::fs::write(home.path().join(".aws/config"), config).unwrap();
    let place = home.path().display().to_string();
    let variables: Vec<(&str, String)> = variables.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    let env = EnvVars::new(move |name| {
        let set = variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
        set.or_else(|| (name == "HOME").then(|| place.clone()))
    });
    DynamodbUrl::parse(text, &env)
}

fn url(text: &str) -> DynamodbUrl {
    parse(text, &[], "").unwrap()
}

fn refused(text: &str) -> String {
    parse(text, &[("AWS_REGION", "eu-west-1")], "[profile a]\n[profile b]\n").unwrap_err()
}

#[test]
fn every_part_of_a_url_is_read() {
    let plain = url("dynamodb://locks?region=eu-west-1");
    assert_eq!((plain.table.as_str(), plain.region.as_str(), plain.key.as_str()), ("locks", "eu-west-1", "key"));
    assert_eq!(plain.endpoint.base, "https://dynamodb.eu-west-1.amazonaws.com");
    assert_eq!((plain.endpoint.reach, plain.durability), (Exposure::Tls, Durability::Declared));
    assert!(plain.sort.is_none() && plain.profile.is_none() && plain.replicas == Replicas::MayLag);

    let text = "dynamodb://My_locks.v-2/?endpoint=http%3A%2F%2F127.0.0.1:8000&region=eu-west-1&key=p%20k&sort_key=sk\
                &sort_key_value=a%2Fb&profile=two+words&require_strong=true&expires=gone&durable=yes";
    let full = parse(text, &[], "[profile \"two words\"]").unwrap();
    assert_eq!((full.table.as_str(), full.key.as_str()), ("My_locks.v-2", "p k"));
    assert_eq!(full.sort, Some(Sort { name: "sk".into(), value: "a/b".into() }));
    assert_eq!((full.profile.as_deref(), full.expires.as_deref()), (Some("two words"), Some("gone")));
    assert_eq!((full.replicas, full.durability), (Replicas::MustAgree, Durability::Declared));
    assert_eq!((full.endpoint.base.as_str(), full.endpoint.reach), ("http://127.0.0.1:8000", Exposure::Loopback));

    let local = url("dynamodb://locks?region=local&endpoint=http://localhost:8000&sort_key=sk");
    assert_eq!((local.durability, local.sort.unwrap().value.as_str()), (Durability::NotDeclared, "-"));
    assert_eq!(url("dynamodb://locks?region=eu-west-1&durable=no").durability, Durability::NotDeclared);
    assert_eq!(url("dynamodb://locks?region=eu-west-1&ca=/a.pem").ca, Some("/a.pem".into()));
}

#[test]
fn errors_name_the_wrong_part_and_the_right_form() {
    for (text, words) in [
        ("dynamodb:locks", "the slashes are missing; write dynamodb://TABLE?region=eu-west-1"),
        ("dynamodb://", "the table is missing; write dynamodb://TABLE?region=eu-west-1"),
        ("dynamodb://?region=eu-west-1", "the table is missing"),
        ("dynamodb://127.0.0.1:8000", "a table, not a host"),
        ("dynamodb://locks/a", "letters, digits, dots"),
        ("dynamodb://ab", "3 to 255"),
        ("dynamodb://arn:aws:dynamodb:eu-west-1:1:table/locks", "letters, digits, dots"),
        ("dynamodb://locks?region=EU", "\"EU\", which is not a region"),
        ("dynamodb://locks?region=eu-west-1.example.com/", "is not a region"),
        ("dynamodb://locks?region=", "\"region\" is empty"),
        ("dynamodb://locks?db=1", "there is no parameter \"db\"; there are ca, dualstack"),
        ("dynamodb://locks?profile=c", "no profile \"c\""),
        ("dynamodb://locks?profile=c", "only a, b"),
        ("dynamodb://locks?profile=a&profile=b", "profile is given twice"),
        ("dynamodb://locks?sort_key_value=x", "sort_key_value without sort_key"),
        ("dynamodb://locks?key=a&sort_key=a", "both \"a\""),
        ("dynamodb://locks?key=ownerName", "every lock uses"),
        ("dynamodb://locks?sort_key=fencingToken", "every lock uses"),
        ("dynamodb://locks?expires=leaseDuration", "every lock uses"),
        ("dynamodb://locks?expires=key", "a key of the table"),
        ("dynamodb://locks?key=a%0Ab", "not the name of an attribute"),
        ("dynamodb://locks?require_strong=1", "write require_strong=true"),
        ("dynamodb://locks?fips=1", "write fips=true"),
        ("dynamodb://locks?durable=maybe", "durable=yes"),
        ("dynamodb://locks?plaintext=yes", "plaintext=allow"),
        ("dynamodb://locks?plaintext=allow", "for http only"),
        ("dynamodb://locks?endpoint=https://a.example&plaintext=allow", "for http only"),
        ("dynamodb://locks?endpoint=127.0.0.1:8000", "must begin with https://"),
        ("dynamodb://locks?endpoint=https://", "not a url"),
        ("dynamodb://locks?endpoint=https://a.example/way", "more than a host"),
        ("dynamodb://locks?endpoint=https://a.example&fips=true", "leave one out"),
        ("dynamodb://locks?endpoint=http://127.0.0.1&ca=x", "https only"),
        ("dynamodb://locks?region=us-iso-east-1&dualstack=true", "no dual-stack endpoint"),
        ("dynamodb://locks?proxy=x", "cannot name a proxy"),
        ("dynamodb://locks#a", "%23"),
    ] {
        let said = refused(text);
        assert!(said.contains(words), "{text}: {said}");
    }
    let most = "x".repeat(1025);
    assert!(refused(&format!("dynamodb://locks?sort_key=a&sort_key_value={most}")).contains("1024"));
    assert!(refused(&format!("dynamodb://locks?key={}", &most[..256])).contains("255"));
}

#[test]
fn keys_in_a_url_are_refused_and_not_repeated() {
    for text in [
        "dynamodb://AKIA:hunter2@locks?region=eu-west-1",
        "dynamodb://hunter2@locks",
        "dynamodb://locks?secret_access_key=hunter2",
        "dynamodb://locks?hunter2%2Fhunter2%2F=x",
        "dynamodb://locks?region=eu-west-1&endpoint=https://a:hunter2@host",
        "dynamodb://locks?session_token=hunter2",
    ] {
        let said = refused(text);
        assert!(!said.contains("hunter2"), "{said}");
        assert!(said.contains("AWS_ACCESS_KEY_ID") || said.contains("there is no parameter"), "{said}");
    }
}

#[test]
fn the_region_comes_from_where_aws_users_keep_it() {
    let config = "[default]\nregion = eu-north-1\n[profile a]\nregion = sa-east-1\n[profile none]\nx = y";
    let region = |text: &str, variables: &[(&'static str, &str)]| parse(text, variables, config).unwrap().region;
    let default = [("AWS_DEFAULT_REGION", "eu-west-3")];
    let both = [("AWS_REGION", "eu-west-2"), ("AWS_DEFAULT_REGION", "eu-west-3")];
    assert_eq!(region("dynamodb://locks?region=eu-west-1&profile=a", &both), "eu-west-1");
    assert_eq!(region("dynamodb://locks", &both), "eu-west-2");
    assert_eq!(region("dynamodb://locks", &default), "eu-west-3");
    assert_eq!(region("dynamodb://locks", &[]), "eu-north-1");
    assert_eq!(region("dynamodb://locks", &[("AWS_PROFILE", "a")]), "sa-east-1");
    assert_eq!(region("dynamodb://locks?profile=a", &both), "sa-east-1");
    assert_eq!(region("dynamodb://locks?profile=none", &both), "eu-west-2");
    for (variables, words) in [
        (&[][..], "the region is missing"),
        (&[][..], "AWS_REGION"),
        (&[][..], "\"default\""),
        (&[("AWS_PROFILE", "b")][..], "\"b\""),
        (&[("AWS_REGION", "eu west")][..], "AWS_REGION is \"eu west\""),
    ] {
        let said = parse("dynamodb://locks", variables, "").unwrap_err();
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn the_endpoint_comes_from_where_aws_users_keep_it() {
    let config = "[default]\nendpoint_url = https://of.profile\n[profile s]\nservices = mine\n\
                  [services mine]\ndynamodb =\n  endpoint_url = https://of.service\n";
    let endpoint = |parameters: &str, variables: &[(&'static str, &str)]| {
        let url = parse(&format!("dynamodb://locks?region=eu-west-1{parameters}"), variables, config);
        url.map_or_else(|error| error, |url| url.endpoint.base)
    };
    let all = ("AWS_ENDPOINT_URL", "https://of.all");
    let own = ("AWS_ENDPOINT_URL_DYNAMODB", "https://of.dynamodb");
    let ignored = ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true");
    assert_eq!(endpoint("&endpoint=https://of.url:1", &[all, own]), "https://of.url:1");
    assert_eq!(endpoint("", &[all, own]), "https://of.dynamodb");
    assert_eq!(endpoint("", &[all]), "https://of.all");
    assert_eq!(endpoint("", &[]), "https://of.profile");
    assert_eq!(endpoint("&profile=s", &[]), "https://of.service");
    assert_eq!(endpoint("", &[all, ignored]), "https://dynamodb.eu-west-1.amazonaws.com");
    assert_eq!(endpoint("&fips=true", &[ignored]), "https://dynamodb-fips.eu-west-1.amazonaws.com");
    assert_eq!(endpoint("&dualstack=true", &[ignored]), "https://dynamodb.eu-west-1.api.aws");
    let fips = ("AWS_USE_FIPS_ENDPOINT", "true");
    assert_eq!(endpoint("&dualstack=true", &[ignored, fips]), "https://dynamodb-fips.eu-west-1.api.aws");
    assert!(endpoint("&fips=true", &[all]).contains("AWS_ENDPOINT_URL names another"));
    assert!(endpoint("", &[("AWS_ENDPOINT_URL", "of.all")]).contains("AWS_ENDPOINT_URL must begin"));
}

#[test]
fn plaintext_needs_permission() {
    for host in ["localhost", "127.0.0.1:8000", "[::1]:8000"] {
        let url = url(&format!("dynamodb://locks?region=eu-west-1&endpoint=http://{host}"));
        assert_eq!((url.endpoint.reach, url.endpoint.base), (Exposure::Loopback, format!("http://{host}")));
    }
    let open = "dynamodb://locks?region=eu-west-1&endpoint=http://ddb.internal:8000";
    assert!(refused(open).contains("plaintext=allow"));
    let told = format!("{open}&plaintext=allow");
    assert_eq!(url(&told).endpoint.reach, Exposure::Plaintext);
    assert_eq!(url(&told).to_string(), told, "what is shown can be used");
    let said = parse("dynamodb://locks?region=eu-west-1", &[("AWS_ENDPOINT_URL", "http://ddb.internal")], "");
    assert!(said.unwrap_err().contains("AWS_ENDPOINT_URL https://"));
}

#[test]
fn a_table_has_one_name_by_any_endpoint() {
    let name = |text: &str| parse(text, &[], "[profile a]").unwrap().node_name();
    let table = "dynamodb://locks?region=eu-west-1";
    for same in [
        "dynamodb://locks?profile=a&region=eu-west-1&key=k",
        "dynamodb://locks/?region=eu-west-1&fips=true&durable=no",
        "dynamodb://locks?region=eu-west-1&endpoint=https://vpce-1.dynamodb.eu-west-1.vpce.amazonaws.com",
    ] {
        assert_eq!(name(same), table);
    }
    assert_ne!(name("dynamodb://locks?region=eu-west-2"), table);
    assert_ne!(name("dynamodb://Locks?region=eu-west-1"), table);
    let local = "dynamodb://locks?region=eu-west-1&endpoint=http://127.0.0.1:8000";
    assert_eq!(name(local), local);
    let machine = |text: &str| url(text).machine();
    assert_eq!(
        (machine(local).as_deref(), machine(table).as_deref()),
        (Some("this machine"), Some("dynamodb.eu-west-1.amazonaws.com"))
    );
}

#[test]
fn another_process_finds_the_same_table_with_the_same_rows() {
    let config = "[profile \"two words\"]\nregion = us-east-1";
    for text in [
        "dynamodb://locks?region=eu-west-1",
        "dynamodb://locks?region=eu-west-1&fips=true&require_strong=true&durable=no&ca=/etc/a%20b.pem",
        "dynamodb://locks?region=eu-west-1&endpoint=http://10.1.2.3:8000&plaintext=allow",
        "dynamodb://locks?endpoint=http://127.0.0.1:8000&key=p%20k&sort_key=sk&sort_key_value=a%2Fb%26c\
         &profile=two+words&expires=gone&durable=yes",
    ] {
        let first = parse(text, &[], config).unwrap();
        // For any environment of the other client.
        let other = [("AWS_REGION", "eu-north-1"), ("AWS_ENDPOINT_URL", "https://example.com")];
        let second = parse(&first.in_full(), &other, config).unwrap();
        let named = Endpoint { given: Given::ByName, ..first.endpoint.clone() };
        assert_eq!(second, DynamodbUrl { endpoint: named, ..first }, "{text}");
        assert!(!second.in_full().contains(char::is_whitespace));
    }
}
