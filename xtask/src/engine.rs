//! The driver on the component instead of the core that is compiled in: whatever holds for one holds for the other.

use crate::component;
use crate::interop::Peers;
use crate::run::{Result, Steps};
use crate::test;

/// The command line brings the client's feature along.
const ON_THE_COMPONENT: [&str; 6] =
    ["-p", "leasehold", "-p", "leasehold-cli", "--features", "leasehold/wasm,leasehold-cli/wasm"];

/// What every store must do, and all that the command line promises.
pub fn test(steps: &mut Steps, peers: &Peers) -> Result {
    let component = component::build(steps)?;
    let precompiled = component::precompile(steps, &component, peers)?;
    let mut tests = test::suite();
    peers.tell(&mut tests);
    tests.args(ON_THE_COMPONENT).args(["--lib", "--test", "conformance"]);
    // Those of the command line whose names the client has no tests of.
    for name in ["answers", "arguments", "library", "lock", "loss", "signals", "terminal"] {
        tests.args(["--test", name]);
    }
    tests.env("LEASEHOLD_ENGINE", "wasm").env("LEASEHOLD_COMPONENT", precompiled);
    steps.run("tests on the component", tests)
}
