//! Compiled code, ready to be instantiated.

use std::fmt;

use wasmtime::component::{self, Linker};
use wasmtime::{Config, Engine};

use crate::bindings::ProtocolPre;
use crate::error::LoadError;
use crate::instance::Guest;

/// A loaded component. Loading takes a moment; keep it, and make as many clients of it as there are sets of stores.
#[derive(Clone)]
pub struct Component {
    pub(crate) engine: Engine,
    pub(crate) pre: ProtocolPre<Guest>,
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Component").finish_non_exhaustive()
    }
}

impl Component {
    /// Compiles a component, which takes tenths of a second.
    ///
    /// # Errors
    /// Bytes that are no component, or one that does not export `wit/leasehold.wit` or imports anything.
    #[cfg(feature = "cranelift")]
    pub fn compile(bytes: &[u8]) -> Result<Self, LoadError> {
        let engine = engine()?;
        let component = component::Component::from_binary(&engine, bytes).map_err(|error| LoadError::new(&error))?;
        Self::link(engine, &component)
    }

    /// Compiles a component for [`Component::deserialize`], on machines like this one.
    ///
    /// # Errors
    /// Bytes that are no component.
    #[cfg(feature = "cranelift")]
    pub fn precompile(bytes: &[u8]) -> Result<Vec<u8>, LoadError> {
        engine()?.precompile_component(bytes).map_err(|error| LoadError::new(&error))
    }

    /// Loads what was compiled before, by `precompile` or by any wasmtime of the same major version with the
    /// same settings: `consume_fuel` on, and no proposal of WebAssembly that this build cannot run, such as garbage
    /// collection or threads.
    ///
    /// # Errors
    /// Bytes that another version, or one with other settings, has compiled; also as for `compile`.
    ///
    /// # Safety
    /// The bytes are machine code that is going to run in this process. They must come from a compiler of wasmtime,
    /// unchanged; nothing checks that they do. Keep them where only those can write who may change the program itself.
    pub unsafe fn deserialize(bytes: &[u8]) -> Result<Self, LoadError> {
        let engine = engine()?;
        // SAFETY: the caller vouches for the bytes.
        let component = unsafe { component::Component::deserialize(&engine, bytes) };
        Self::link(engine, &component.map_err(|error| LoadError::new(&error))?)
    }

    /// Nothing is linked: a component that imports anything is refused.
    fn link(engine: Engine, component: &component::Component) -> Result<Self, LoadError> {
        let pre = Linker::new(&engine).instantiate_pre(component).and_then(ProtocolPre::new);
        Ok(Self { pre: pre.map_err(|error| LoadError::new(&error))?, engine })
    }
}

fn engine() -> Result<Engine, LoadError> {
    let mut config = Config::new();
    config.consume_fuel(true);
    config.concurrency_support(false);
    Engine::new(&config).map_err(|error| LoadError::new(&error))
}
