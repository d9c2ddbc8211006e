//! `Grammar`: what a front-end built, checked and hash-consed.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::errors::OrRaise;
use crate::ir::{Ir, Node};

/// The arrays of `compiler/src/ir/encode.rs`: nodes, rules, texts, the names and marks of rules, the start.
type Arrays<'py> =
    (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Vec<String>, Bound<'py, PyBytes>, u32);

#[pyclass(frozen, module = "grammarspec._compiler")]
pub(super) struct Grammar(pub(super) Arc<Ir>);

#[pymethods]
impl Grammar {
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    /// The grammar as arrays, for Python code that looks at its nodes.
    fn arrays<'py>(&self, py: Python<'py>) -> Arrays<'py> {
        let ir = &self.0;
        let encoded = ir.encode(0, 0);
        let array = |words: &[u32]| PyBytes::new(py, &words.iter().flat_map(|n| n.to_ne_bytes()).collect::<Vec<u8>>());
        (
            array(&encoded.ops),
            array(&encoded.rules),
            PyBytes::new(py, &encoded.blob),
            ir.names[..encoded.rules.len()].to_vec(),
            PyBytes::new(py, &encoded.kinds),
            encoded.start,
        )
    }

    /// The literals that hold a byte.
    fn literals_with<'py>(&self, py: Python<'py>, byte: u8) -> Vec<Bound<'py, PyBytes>> {
        let literals = self.0.nodes.iter().filter_map(|node| match node {
            Node::Literal(text) if text.contains(&byte) => Some(PyBytes::new(py, text)),
            _ => None,
        });
        literals.collect()
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        Ok(Grammar(Arc::new(Ir::from_bytes(data).or_raise(py)?)))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let class = py.get_type::<Grammar>();
        Ok((class.getattr("from_bytes")?, (self.to_bytes(py),)))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Grammar>().is_ok_and(|o| o.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{Hash, Hasher};
        let mut h = rustc_hash::FxHasher::default();
        self.0.hash(&mut h);
        h.finish()
    }
}
