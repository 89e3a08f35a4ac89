//! Each provider gives what its endpoint gives.

use super::*;

const ROLE: &str = "arn:aws:iam::123456789012:role/locks";

#[test]
fn the_environment_comes_first() {
    let world = World::empty();
    world.config("[default]\naws_access_key_id = PROFILE\naws_secret_access_key = hunter2");
    world.set("AWS_ACCESS_KEY_ID", " AKIA1\n").set("AWS_SECRET_ACCESS_KEY", "hunter2/+=");
    let keys = world.keys().unwrap();
    assert_eq!((line(&keys).as_str(), keys.expires_unix_ms), ("AKIA1 hunter2/+= none", None));
    world.set("AWS_SESSION_TOKEN", "token");
    assert_eq!(line(&world.keys().unwrap()), "AKIA1 hunter2/+= token");
    assert!(world.asked().is_empty());
}

#[test]
fn profiles_have_keys_in_either_file() {
    let mut world = World::empty();
    world.config("[default]\naws_access_key_id = CONFIG\naws_secret_access_key = hunter2\n[profile a]\nregion = x");
    assert_eq!(line(&world.keys().unwrap()), "CONFIG hunter2 none");
    let credentials = "[default]\naws_access_key_id=CREDENTIALS\naws_secret_access_key=hunter2\n\
                       [a]\naws_access_key_id=A\naws_secret_access_key=hunter2\naws_session_token=token\n";
    world.write(".aws/credentials", credentials);
    assert_eq!(line(&world.keys().unwrap()), "CREDENTIALS hunter2 none");
    world.set("AWS_PROFILE", "a");
    assert_eq!(line(&world.keys().unwrap()), "A hunter2 token");
    world.set("AWS_ACCESS_KEY_ID", "ENV").set("AWS_SECRET_ACCESS_KEY", "hunter2");
    assert_eq!(line(&world.keys().unwrap()), "ENV hunter2 none");
    // A profile that the url names is meant.
    world.profile = Some("default".to_owned());
    assert_eq!(line(&world.keys().unwrap()), "CREDENTIALS hunter2 none");
    world.write("elsewhere", "[default]\naws_access_key_id=ELSEWHERE\naws_secret_access_key=hunter2");
    world.set("AWS_SHARED_CREDENTIALS_FILE", "~/elsewhere");
    assert_eq!(line(&world.keys().unwrap()), "ELSEWHERE hunter2 none");
}

#[test]
fn a_profile_takes_its_role_with_the_keys_of_another() {
    let world = World::new(|request| match request.path.contains("Role2") {
        true => sts("AssumeRole", "ASIAROLE2ROLE2ROLE2", &time(3600)),
        false => sts("AssumeRole", "ASIAROLEROLEROLEROLE", &time(3600)),
    });
    world.config(&format!(
        "[default]\nrole_arn = {ROLE}\nsource_profile = base\nexternal_id = ext/1\nrole_session_name = who\n\
         duration_seconds = 900\n[profile base]\naws_access_key_id = BASE\naws_secret_access_key = hunter2\n\
         aws_session_token = basetoken\n\
         [profile second]\nrole_arn = {ROLE}Role2\nsource_profile = default\n\
         [profile self]\nrole_arn = {ROLE}\nsource_profile = self\naws_access_key_id = SELF\n\
         aws_secret_access_key = hunter2\n[profile env]\nrole_arn = {ROLE}\ncredential_source = Environment\n"
    ));
    let keys = world.keys().unwrap();
    assert_eq!(line(&keys), "ASIAROLEROLEROLEROLE hunter2 token");
    let expires = keys.expires_unix_ms.unwrap();
    assert!(expires > clock::unix_ms() && expires <= clock::unix_ms() + 3_600_000, "{expires}");
    let asked = world.server.asked();
    assert_eq!(asked.len(), 1);
    let request = &asked[0];
    assert_eq!(request.header("x-meant-for"), Some("sts.eu-west-1.amazonaws.com"));
    for part in ["Action=AssumeRole&", "ExternalId=ext%2F1", "RoleSessionName=who", "DurationSeconds=900"] {
        assert!(request.path.contains(part), "{part} in {}", request.path);
    }
    let signed = request.header("authorization").unwrap();
    assert!(signed.contains("Credential=BASE/") && signed.contains("/eu-west-1/sts/aws4_request"), "{signed}");
    assert_eq!(request.header("x-amz-security-token"), Some("basetoken"));

    world.set("AWS_PROFILE", "second");
    assert_eq!(line(&world.keys().unwrap()), "ASIAROLE2ROLE2ROLE2 hunter2 token");
    assert_eq!(world.server.asked().len(), 3);
    let signed = world.server.asked()[2].header("authorization").unwrap().to_owned();
    assert!(signed.contains("Credential=ASIAROLEROLEROLEROLE/"), "{signed}");

    world.set("AWS_PROFILE", "self");
    assert!(world.keys().unwrap().source.contains("\"self\""));
    let mut world = world;
    world.profile = Some("env".to_owned());
    world.set("AWS_ACCESS_KEY_ID", "ENV").set("AWS_SECRET_ACCESS_KEY", "hunter2");
    world.keys().unwrap();
    let signed = world.server.asked().last().unwrap().header("authorization").unwrap().to_owned();
    assert!(signed.contains("Credential=ENV/"), "{signed}");
}

#[test]
fn a_role_may_be_taken_with_what_serves_the_container_or_the_machine() {
    let world = World::new(|request| match (request.header("x-meant-for"), request.path.as_str()) {
        (Some("169.254.170.2"), _) => metadata("CONTAINER", &time(3600)),
        (_, "/latest/api/token") => Reply::new(200, "imds-token"),
        (_, "/latest/meta-data/iam/security-credentials/") => Reply::new(200, "role"),
        (_, "/latest/meta-data/iam/security-credentials/role") => metadata("MACHINE", &time(3600)),
        _ => sts("AssumeRole", "ASIAROLEROLEROLEROLE", &time(3600)),
    });
    world.set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x");
    for (source, id) in [("EcsContainer", "CONTAINER"), ("Ec2InstanceMetadata", "MACHINE")] {
        world.config(&format!("[default]\nrole_arn = {ROLE}\ncredential_source = {source}\n"));
        world.keys().unwrap();
        let signed = world.server.asked().last().unwrap().header("authorization").unwrap().to_owned();
        assert!(signed.contains(&format!("Credential={id}/")), "{signed}");
    }
}

#[test]
fn a_web_identity_becomes_a_role() {
    let world = World::new(|_| sts("AssumeRoleWithWebIdentity", "ASIAWEB", &time(3600)));
    world.write("token", "jwt.of.pod\n");
    world.set("AWS_WEB_IDENTITY_TOKEN_FILE", "HOME/token").set("AWS_ROLE_ARN", ROLE);
    assert_eq!(line(&world.keys().unwrap()), "ASIAWEB hunter2 token");
    let request = &world.server.asked()[0];
    assert_eq!(request.header("x-meant-for"), Some("sts.eu-west-1.amazonaws.com"));
    let body = request.text();
    assert!(body.contains("WebIdentityToken=jwt.of.pod&") && body.contains("RoleSessionName=leasehold-"), "{body}");
    world.set("AWS_ROLE_SESSION_NAME", "pod-1");
    world.keys().unwrap();
    assert!(world.server.asked()[1].text().contains("RoleSessionName=pod-1"));

    let world = World::new(|_| sts("AssumeRoleWithWebIdentity", "ASIAPROFILE", &time(3600)));
    let token = world.home.path().join("token").display().to_string();
    world.write("token", "jwt").config(&format!("[default]\nrole_arn={ROLE}\nweb_identity_token_file={token}\n"));
    assert_eq!(line(&world.keys().unwrap()), "ASIAPROFILE hunter2 token");
}

/// Files in the cache are named by the SHA-1 of what the session is named after.
fn sso_cache(world: &World, digest: &str, expires: &str) {
    let text = format!(r#"{{"accessToken":"sso-hunter2","expiresAt":"{expires}","region":"x","startUrl":"x"}}"#);
    world.write(&format!(".aws/sso/cache/{digest}.json"), &text);
}

/// `printf corp | sha1sum`
const CORP: &str = "ee0bfd2552fbd840c02cc48b6e823320543c450f";
/// `printf https://corp.awsapps.com/start | sha1sum`
const START: &str = "a51746d4aa793ae07b25e90c3a5db96fc7832bd7";

#[test]
fn sso_gives_the_role_of_a_profile() {
    let world = World::new(|request| match request.header("x-amz-sso_bearer_token") {
        Some("sso-hunter2") => {
            let expiration = clock::unix_ms() + 3_600_000;
            Reply::new(
                200,
                format!(
                    r#"{{"roleCredentials":{{"accessKeyId":"ASIASSO","secretAccessKey":"hunter2","sessionToken":"token","expiration":{expiration}}}}}"#
                ),
            )
        }
        _ => Reply::new(401, ""),
    });
    let role = "sso_account_id = 123456789012\nsso_role_name = locks\n";
    world.config(&format!(
        "[default]\nsso_session = corp\n{role}[sso-session corp]\nsso_region = eu-central-1\nsso_start_url = x\n\
         [profile old]\nsso_start_url = https://corp.awsapps.com/start\nsso_region = cn-north-1\n{role}"
    ));
    assert!(world.refused().contains("aws sso login --profile default"));
    sso_cache(&world, CORP, &time(-60));
    assert!(world.refused().contains("aws sso login --profile default"));
    sso_cache(&world, CORP, &time(3600));
    let keys = world.keys().unwrap();
    assert_eq!(line(&keys), "ASIASSO hunter2 token");
    assert!(keys.expires_unix_ms.is_some());
    let path = "/federation/credentials?role_name=locks&account_id=123456789012";
    assert_eq!(world.asked(), [format!("GET portal.sso.eu-central-1.amazonaws.com{path}")]);
    world.set("AWS_PROFILE", "old");
    sso_cache(&world, START, &time(3600));
    world.keys().unwrap();
    assert_eq!(world.asked()[1], format!("GET portal.sso.cn-north-1.amazonaws.com.cn{path}"));
    let world = World::new(|_| Reply::new(403, "hunter2"));
    world.config(&format!("[default]\nsso_session = corp\n{role}[sso-session corp]\nsso_region = eu-central-1\n"));
    sso_cache(&world, CORP, &time(3600));
    assert!(world.refused().contains("403"), "{}", world.refused());
}

#[test]
fn a_program_may_know_the_keys() {
    let world = World::empty();
    let tool = world.home.path().join("my tool");
    let print = format!(
        "#!/bin/sh\n[ \"$1\" = 'two words' ] || exit 7\necho '{{\"Version\":1,\"AccessKeyId\":\"ASIATOOL\",\
         \"SecretAccessKey\":\"hunter2\",\"SessionToken\":\"token\",\"Expiration\":\"{}\"}}'\n",
        time(3600)
    );
    std::fs::write(&tool, print).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&tool, open).unwrap();
    world.config(&format!("[default]\ncredential_process = /bin/sh \"{}\" 'two words'\n", tool.display()));
    let keys = world.keys().unwrap();
    assert_eq!(line(&keys), "ASIATOOL hunter2 token");
    assert!(keys.expires_unix_ms.is_some());
}

#[test]
fn containers_are_served_at_a_fixed_address_or_on_loopback() {
    let serve = |request: &Request| match (request.path.as_str(), request.header("authorization")) {
        ("/v2/credentials/1", None) => metadata("ECS", &time(3600)),
        ("/eks", Some("secret of file")) => metadata("EKS", &time(3600)),
        ("/eks", Some("secret")) => metadata("PLAIN", &time(3600)),
        _ => Reply::new(403, "hunter"),
    };
    let world = World::new(serve);
    world.set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/1");
    assert_eq!(line(&world.keys().unwrap()), "ECS hunter2 token");
    assert_eq!(world.asked(), ["GET 169.254.170.2/v2/credentials/1"]);

    for (url, host) in
        [("http://169.254.170.23/eks", "169.254.170.23"), ("http://[fd00:ec2::23]/eks", "[fd00:ec2::23]")]
    {
        let world = World::new(serve);
        world.set("AWS_CONTAINER_CREDENTIALS_FULL_URI", url);
        world.set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "secret");
        assert_eq!(line(&world.keys().unwrap()), "PLAIN hunter2 token");
        // The file is read each time, since its token is renewed.
        world.set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "HOME/token").write("token", "secret of file\n");
        assert_eq!(line(&world.keys().unwrap()), "EKS hunter2 token");
        assert_eq!(world.asked()[0], format!("GET {host}/eks"));
    }
    let world = World::new(serve);
    world.set("AWS_CONTAINER_CREDENTIALS_FULL_URI", &format!("{}/v2/credentials/1", world.server.url()));
    assert_eq!(line(&world.keys().unwrap()), "ECS hunter2 token");
    assert_eq!(world.asked(), ["GET loopback/v2/credentials/1"]);
}

fn machine(request: &Request) -> Reply {
    const LIST: &str = "/latest/meta-data/iam/security-credentials/";
    let token = request.header("x-aws-ec2-metadata-token");
    match (request.method.as_str(), request.path.as_str(), token) {
        ("PUT", "/latest/api/token", None) => Reply::new(200, "imds-token"),
        ("GET", LIST, Some("imds-token")) => Reply::new(200, "my-role"),
        ("GET", path, Some("imds-token")) if path.strip_prefix(LIST) == Some("my-role") => {
            metadata("ASIAMACHINE", &time(6 * 3600))
        }
        _ => Reply::new(401, ""),
    }
}

#[test]
fn machines_are_served_under_a_token_of_a_session() {
    let world = World::new(machine);
    assert_eq!(line(&world.keys().unwrap()), "ASIAMACHINE hunter2 token");
    assert_eq!(
        world.asked(),
        [
            "PUT 169.254.169.254/latest/api/token",
            "GET 169.254.169.254/latest/meta-data/iam/security-credentials/",
            "GET 169.254.169.254/latest/meta-data/iam/security-credentials/my-role",
        ]
    );
    let world = World::new(machine);
    world.set("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv6");
    world.keys().unwrap();
    assert_eq!(world.asked()[0], "PUT [fd00:ec2::254]/latest/api/token");
    let world = World::new(machine);
    world.set("AWS_EC2_METADATA_SERVICE_ENDPOINT", &format!("{}/", world.server.url()));
    world.keys().unwrap();
    assert_eq!(world.asked()[0], "PUT loopback/latest/api/token");
}
