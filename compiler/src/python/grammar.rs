//! `Grammar`: what a front-end built, checked and hash-consed.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::detached::detached;
use super::errors::OrRaise;
use crate::ir::{Base, Ir, Node, Parts};

/// Numbers in the byte order of the machine, as `array("I")` has them.
fn words(data: &[u8]) -> Vec<u32> {
    data.chunks_exact(4).map(|c| u32::from_ne_bytes(c.try_into().expect("4 bytes"))).collect()
}

/// What the builder holds: operations, rules, blob, names, kinds, the start; and the number of nodes.
type Arrays<'py> =
    (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Vec<String>, Bound<'py, PyBytes>, u32, u32);

#[pyclass(frozen, module = "grammarspec._compiler")]
pub(super) struct Grammar(pub(super) Arc<Ir>);

#[pymethods]
impl Grammar {
    #[new]
    fn new(
        py: Python<'_>,
        ops: &[u8],
        rules: &[u8],
        blob: &[u8],
        names: Vec<String>,
        kinds: &[u8],
        start: u32,
    ) -> PyResult<Self> {
        let decode = || Ir::decode(&Parts { ops: &words(ops), rules: &words(rules), blob, names, kinds, start });
        Ok(Grammar(Arc::new(detached(py, decode).or_raise(py)?)))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    /// The builder's arrays, for a builder that has so many nodes, rules and bytes of text already.
    fn arrays<'py>(&self, py: Python<'py>, nodes: u32, rules: u32, blob: u32) -> Arrays<'py> {
        let ir = &self.0;
        let encoded = ir.encode(Base { nodes, rules, blob });
        let array = |words: &[u32]| PyBytes::new(py, &words.iter().flat_map(|n| n.to_ne_bytes()).collect::<Vec<u8>>());
        (
            array(&encoded.ops),
            array(&encoded.rules),
            PyBytes::new(py, &encoded.blob),
            ir.names[..encoded.rules.len()].to_vec(),
            PyBytes::new(py, &encoded.kinds),
            encoded.start,
            ir.nodes.len() as u32,
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
