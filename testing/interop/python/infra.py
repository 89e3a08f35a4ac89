"""Checks the samples in docs/infra: `infra.py FOLDER`. Says what is wrong with which file, and ends with 1."""

import json
import pathlib
import re
import subprocess
import sys

import hcl2
import kubernetes_validate
import yaml

# The same as its program, which lies elsewhere on every system.
LINT = "import sys; from cfnlint.runner import main; sys.exit(main())"
WORKER = {"dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:DescribeTable"}
ADMIN = {
    "dynamodb:CreateTable",
    "dynamodb:DescribeTable",
    "dynamodb:DescribeTimeToLive",
    "dynamodb:TagResource",
    "dynamodb:UpdateTimeToLive",
}
TRUST = {"sts:AssumeRoleWithWebIdentity"}
KUBERNETES = "1.37"
MANIFESTS = {"cronjob.yaml": "CronJob", "leader.yaml": "Deployment"}
POLICIES = {"iam-worker.json": WORKER, "iam-admin.json": ADMIN, "iam-web-identity-trust.json": TRUST}


def expect(condition, what):
    if not condition:
        raise ValueError(what)


def plain(value):
    """A string of Terraform without its quotes."""
    return value.strip('"') if isinstance(value, str) else value


def policy(path, rights):
    document = json.loads(path.read_text())
    expect(document["Version"] == "2012-10-17", "the version of its language is another one")
    found = set()
    for statement in document["Statement"]:
        expect(statement["Effect"] == "Allow", "a statement allows nothing")
        expect(("Resource" in statement) != ("Principal" in statement), "either a resource or a principal")
        expect("*" not in json.dumps(statement), "a wildcard")
        actions = statement["Action"]
        found |= {actions} if isinstance(actions, str) else set(actions)
    expect(found == rights, f"its rights are {sorted(found)}, not {sorted(rights)}")
    if rights is TRUST:
        names = {name.rsplit(":", 1)[1] for name in document["Statement"][0]["Condition"]["StringEquals"]}
        expect(names == {"aud", "sub"}, "its conditions are not aud and sub")


def terraform(path):
    with path.open() as file:
        document = hcl2.load(file)
    tables = [
        body
        for resource in document["resource"]
        for kind, named in resource.items()
        for body in named.values()
        if plain(kind) == "aws_dynamodb_table"
    ]
    expect(len(tables) == 2, f"{len(tables)} tables")
    for table in tables:
        attributes = {plain(attribute["name"]): plain(attribute["type"]) for attribute in table["attribute"]}
        expect(plain(table["billing_mode"]) == "PAY_PER_REQUEST", "a table that is not paid by the request")
        expect(attributes == {plain(table["hash_key"]): "S"}, "attributes that are not the key")
    replicas = [replica for table in tables for replica in table.get("replica", [])]
    modes = [plain(replica["consistency_mode"]) for replica in replicas]
    expect(modes == ["STRONG"], f"replicas with the modes {modes}")


def resources(document):
    """The bodies of the resources of a file, by their kind."""
    found = {}
    for resource in document.get("resource", []):
        for kind, named in resource.items():
            found.setdefault(plain(kind), []).extend(named.values())
    return found


def one(found, kind):
    expect(len(found.get(kind, [])) == 1, f"{len(found.get(kind, []))} resources of the kind {kind}")
    return found[kind][0]


def cloud(path):
    """One of the samples for cloud storage, each in a folder of its own."""
    with path.open() as file:
        document = hcl2.load(file)
    text = path.read_text()
    kept = re.findall(r"^\s*(?:resource \"\w*)?(versioning|lifecycle|object_lock|delete_retention)\w*\b[^#]*[{=]", text, re.M)
    expect(not kept, f"{kept}, which locks must not have")
    found = resources(document)
    name = path.parent.name
    if name == "s3":
        block = one(found, "aws_s3_bucket_public_access_block")
        expect(block["block_public_policy"] is True and block["restrict_public_buckets"] is True, "a public bucket")
        actions = set(re.findall(r's3:[A-Za-z]+', text.split("jsonencode", 1)[1]))
        expect(actions == {"s3:GetObject", "s3:PutObject", "s3:ListBucket"}, f"the rights {sorted(actions)}")
    elif name == "azure":
        account = one(found, "azurerm_storage_account")
        expect(account["allow_nested_items_to_be_public"] is False, "blobs that may be public")
        expect(account["shared_access_key_enabled"] is False, "keys of the account")
        expect(plain(one(found, "azurerm_storage_container")["container_access_type"]) == "private", "a public container")
        role = plain(one(found, "azurerm_role_assignment")["role_definition_name"])
        expect(role == "Storage Blob Data Contributor", f"the role {role}")
    elif name == "gcs":
        bucket = one(found, "google_storage_bucket")
        expect(bucket["uniform_bucket_level_access"] is True, "rights on objects of their own")
        expect(bucket["soft_delete_policy"][0]["retention_duration_seconds"] == 0, "deleted objects are kept")
        role = plain(one(found, "google_storage_bucket_iam_member")["role"])
        expect(role == "roles/storage.objectUser", f"the role {role}")
    elif name == "cosmos":
        account = one(found, "azurerm_cosmosdb_account")
        expect(account["multiple_write_locations_enabled"] is False, "several regions that take writes")
        expect(account["local_authentication_disabled"] is True, "keys of the account")
        level = plain(account["consistency_policy"][0]["consistency_level"])
        expect(level in {"Strong", "BoundedStaleness"}, f"the consistency {level}")
        container = one(found, "azurerm_cosmosdb_sql_container")
        expect([plain(path) for path in container["partition_key_paths"]] == ["/id"], "another partition key")
        expect("default_ttl" not in container, "a time to live")
        role = plain(one(found, "azurerm_cosmosdb_sql_role_assignment")["role_definition_id"])
        expect(role.endswith("-000000000002"), f"the role {role}")
    else:
        expect(name == "three-clouds", "a folder that is not checked")
        actions = set(re.findall(r"dynamodb:[A-Za-z]+", text.split("jsonencode", 1)[1].split("})", 1)[0]))
        expect(actions == WORKER, f"the rights {sorted(actions)}")
        for module in document["module"]:
            for body in module.values():
                expect((path.parent / plain(body["source"]) / "main.tf").is_file(), "a module that is not there")


def manifest(path, kind):
    document = yaml.safe_load(path.read_text())
    kubernetes_validate.validate(document, KUBERNETES, strict=True)
    expect(document["kind"] == kind, "it is another kind of resource")


def template(path):
    lint = subprocess.run([sys.executable, "-c", LINT, "--template", path], capture_output=True, text=True)
    expect(lint.returncode == 0, lint.stdout + lint.stderr)


def main(folder):
    failures = []

    def check(path, run):
        try:
            run()
            print(f"{path.relative_to(folder)}: good")
        except Exception as error:  # Whatever a parser throws is the file's fault.
            failures.append(f"{path.relative_to(folder)}: {type(error).__name__}: {error}")

    found = {path.name for path in folder.glob("*.json")}
    if found != set(POLICIES):
        failures.append(f"{sorted(found ^ set(POLICIES))}: not in the folder, or not checked")
    for name, rights in POLICIES.items():
        check(folder / name, lambda: policy(folder / name, rights))
    for path in sorted(folder.glob("*.tf")):
        check(path, lambda: terraform(path))
    for path in sorted(folder.glob("*/main.tf")):
        check(path, lambda: cloud(path))
    for path in sorted(folder.glob("*.yaml")):
        kind = MANIFESTS.get(path.name)
        check(path, lambda: manifest(path, kind) if kind else template(path))
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
