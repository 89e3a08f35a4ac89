//! Which machine decides: the one that is compiled in, or the same one as a WebAssembly component.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use leasehold::{ClientBuilder, Component};

use crate::output::Failure;
use crate::store::variable;

const ENGINE: &str = "LEASEHOLD_ENGINE";
const COMPONENT: &str = "LEASEHOLD_COMPONENT";

#[derive(Debug, Args)]
pub(crate) struct EngineArgs {
    /// What decides; without it, LEASEHOLD_ENGINE, or native
    #[arg(long, value_name = "ENGINE")]
    engine: Option<Engine>,
    /// The component, compiled for this machine; without it, LEASEHOLD_COMPONENT
    ///
    /// A file that `cargo xtask component --test` makes. It is machine code and runs as this program: name none that
    /// others can write to.
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// The machine that is compiled in
    Native,
    /// The WebAssembly component
    Wasm,
}

impl EngineArgs {
    pub(crate) fn choose(&self, settings: ClientBuilder) -> Result<ClientBuilder, Failure> {
        match self.engine()? {
            Engine::Native if self.component.is_some() => Err(Failure::usage("--component is for --engine wasm")),
            Engine::Native => Ok(settings),
            Engine::Wasm => Ok(settings.component(self.component()?)),
        }
    }

    fn engine(&self) -> Result<Engine, Failure> {
        if let Some(engine) = self.engine {
            return Ok(engine);
        }
        let Some(name) = variable(ENGINE)? else { return Ok(Engine::Native) };
        Engine::from_str(&name, false)
            .map_err(|_| Failure::usage(format!("{ENGINE} is {name:?}; it may be native or wasm")))
    }

    fn component(&self) -> Result<Component, Failure> {
        let path = match &self.component {
            Some(path) => path.clone(),
            None => PathBuf::from(variable(COMPONENT)?.ok_or_else(|| {
                Failure::usage(format!(
                    "the engine wasm needs its component: name the file with --component or in {COMPONENT}"
                ))
            })?),
        };
        let bytes = std::fs::read(&path)
            .map_err(|error| Failure::usage(format!("cannot read the component {}: {error}", path.display())))?;
        // SAFETY: whoever starts this program has named the file, and vouches for it as for the program itself.
        let component = unsafe { Component::deserialize(&bytes) };
        component.map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
    }
}
