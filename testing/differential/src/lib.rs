//! Every store, and every model of one, measured against the reference store of the core: the same random sequence of steps
//! for both, and after each step the answer and the whole record compared.

pub mod allowed;
pub mod compare;
pub(crate) mod items;
pub mod measure;
pub mod reference;
pub mod run;
pub mod script;
pub mod shrink;
pub mod stores;
