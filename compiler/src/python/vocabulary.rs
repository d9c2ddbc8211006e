//! `VocabularyIndex`: a tokenizer's tokens, indexed once for all constraints on them.

use std::thread::sleep;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::detached::detached;
use super::memory;
use crate::automaton::{Bounds, Index, spell};
use crate::vocabulary::Vocabulary;

/// Logits of a model, at most.
const MOST_TOKENS: usize = 1 << 24;

/// Tokens whose texts are copied while no other thread can run Python: a few milliseconds' work.
const COPIED_AT_ONCE: usize = 1 << 15;
/// Others have their turn then. Without a pause, one that waits would be woken and come too late each time.
const TURN: Duration = Duration::from_micros(300);

#[pyclass(frozen, module = "grammarspec._compiler")]
pub(super) struct VocabularyIndex(pub(super) Index);

#[pymethods]
impl VocabularyIndex {
    #[new]
    fn new(
        py: Python<'_>,
        tokens: &Bound<'_, PyAny>,
        eos_token_ids: Vec<u32>,
        special_token_ids: Vec<u32>,
        size: usize,
    ) -> PyResult<Self> {
        if size > MOST_TOKENS {
            return Err(PyValueError::new_err(format!(
                "a vocabulary of {size} tokens; at most {MOST_TOKENS} are possible"
            )));
        }
        // All texts stand in one piece of memory, each a range of it.
        let (mut bytes, mut ranges) = (Vec::new(), Vec::new());
        for (at, token) in tokens.try_iter()?.enumerate() {
            let (token, start) = (token?, bytes.len());
            ranges.push(if token.is_none() {
                None
            } else {
                bytes.extend_from_slice(token.cast::<PyBytes>()?.as_bytes());
                Some(start..bytes.len())
            });
            if (at + 1) % COPIED_AT_ONCE == 0 {
                py.detach(|| sleep(TURN));
            }
        }
        Ok(VocabularyIndex(detached(py, || {
            let texts = ranges.into_iter().map(|range| range.map(|range| &bytes[range]));
            Index::new(Vocabulary::new(texts, eos_token_ids, special_token_ids, size))
        })))
    }

    fn without_caches(&self) -> VocabularyIndex {
        VocabularyIndex(self.0.without_caches())
    }

    fn keep(&self, py: Python<'_>, constraints: usize, memory: usize) -> PyResult<()> {
        let Some(freed) = detached(py, || self.0.keep(Bounds { constraints, memory })) else {
            return Err(PyValueError::new_err("a vocabulary without caches keeps no constraints"));
        };
        memory::count_freed(freed);
        Ok(())
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for (name, value) in self.0.stats() {
            out.set_item(name, value)?;
        }
        Ok(out)
    }

    #[getter]
    fn size(&self) -> usize {
        self.0.vocab.size
    }

    #[getter]
    fn eos_token_ids(&self) -> Vec<u32> {
        self.0.vocab.eos.clone()
    }

    #[getter]
    fn fingerprint(&self) -> String {
        format!("{:016x}", self.0.vocab.fingerprint())
    }

    fn spell(&self, text: &[u8]) -> Vec<u32> {
        spell(&self.0.vocab, text, true)
    }

    fn token_bytes<'py>(&self, py: Python<'py>, token: u32) -> Option<Bound<'py, PyBytes>> {
        match self.0.vocab.token(token) {
            [] => None,
            text => Some(PyBytes::new(py, text)),
        }
    }
}
