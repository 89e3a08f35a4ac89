// Each public name of the declarations is documented, and each parameter has a name and a type.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import ts from "typescript";

const FOLDERS = ["", "lib/", "lib/values/", "edge/", "compat/"];
const source = (folder) => `${process.env.LEASEHOLD_SOURCE}/node/${folder}`;
const files = FOLDERS.flatMap((folder) =>
  readdirSync(source(folder)).filter((name) => name.endsWith(".d.ts")).map((name) => folder + name),
);

/** The declarations of a file, and the members of its classes, interfaces and object types, as `{ name, node }`. */
function* declared(parent, within = "") {
  for (const node of parent.statements ?? parent.members ?? []) {
    const list = ts.isVariableStatement(node) ? node.declarationList.declarations : [node];
    for (const each of list) {
      const name = `${within}${each.name?.getText() ?? ts.SyntaxKind[each.kind]}`;
      yield { name, node: each, documented: node };
      if (ts.isClassDeclaration(each) || ts.isInterfaceDeclaration(each)) yield* declared(each, `${name}.`);
    }
  }
}

const isListed = ({ node }) =>
  !ts.isImportDeclaration(node) && !ts.isExportDeclaration(node) && !ts.isExportAssignment(node) && !ts.isConstructorDeclaration(node) &&
  !ts.isIndexSignatureDeclaration(node);

for (const file of files) {
  test(`${file}: each name is documented, and each parameter typed`, () => {
    const text = ts.createSourceFile(file, readFileSync(source("") + file, "utf8"), ts.ScriptTarget.Latest, true);
    const names = [...declared(text)].filter(isListed);
    const bare = names.filter(({ documented }) => ts.getJSDocCommentsAndTags(documented).length === 0);
    const overloads = new Set(names.filter((each) => !bare.includes(each)).map(({ name }) => name));
    // The first of several overloads stands for all, and standard symbols for themselves.
    const missing = bare.map(({ name }) => name).filter((name) => !overloads.has(name) && !name.includes("[Symbol."));
    assert.deepEqual(missing, []);
    const untyped = names.flatMap(({ name, node }) =>
      (node.parameters ?? []).filter((each) => !each.type || each.type.kind === ts.SyntaxKind.AnyKeyword).map(() => name),
    );
    assert.deepEqual(untyped, []);
  });
}
