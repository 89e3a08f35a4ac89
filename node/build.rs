//! What the linker has to be told about addons.

fn main() {
    napi_build::setup();
}
