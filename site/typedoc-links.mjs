// Methods that a class of another module inherits keep their links to the first module.

export function load({ converter }) {
  converter.addUnknownSymbolResolver((reference, from) => {
    const name = reference.symbolReference?.path?.map(({ path }) => path);
    const target = name && from.project.getChildByName(["index", ...name]);
    return target && { target };
  });
}
