//! Linker settings for addons.

fn main() {
    napi_build::setup();
}
