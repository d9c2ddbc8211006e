//! `Constraint`: a grammar on a vocabulary, its states as integers; `compile`, `CancelToken` and `Pin`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::detached::detached;
use super::errors::OrRaise;
use super::grammar::Grammar;
use super::matcher::{Matcher, Token};
use super::memory::Rows;
use super::shared::Shared;
use super::vocabulary::VocabularyIndex;
use crate::automaton::{Anchor, StateId};
use crate::budget::{Cancel, Limits};
use crate::error::{Error, catching};
use crate::frozen::{Bounds, MOST_CLASSES};

#[pyclass(frozen, module = "grammarspec._compiler")]
pub(super) struct CancelToken(Cancel);

#[pymethods]
impl CancelToken {
    #[new]
    fn new() -> Self {
        CancelToken(Arc::new(AtomicBool::new(false)))
    }

    fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    #[getter]
    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[pyclass(frozen, module = "grammarspec._compiler")]
pub(super) struct Constraint(Arc<Shared>);

#[pymethods]
impl Constraint {
    fn is_for(&self, vocabulary: &VocabularyIndex) -> bool {
        self.0.vocab.same_as(&vocabulary.0.vocab)
    }

    /// A constraint does not keep its grammar, so it is shown by what it has built.
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let stats = self.0.run(py, |engine| Ok(engine.stats()))?;
        let of = |name| stats.iter().find(|(known, _)| *known == name).map_or(0, |(_, value)| *value);
        Ok(format!("<Constraint: {} states, {} masks, {} bytes>", of("states"), of("masks"), of("memory")))
    }

    #[getter]
    fn start(&self) -> StateId {
        self.0.start().id
    }

    #[pyo3(signature = (*, end_token_ids = Vec::new()), text_signature = "($self, *, end_token_ids=())")]
    fn matcher(slf: &Bound<'_, Self>, end_token_ids: Vec<Token>) -> PyResult<Matcher> {
        Matcher::new(slf.clone().into_any().unbind(), slf.get().0.clone(), end_token_ids)
    }

    fn step(&self, py: Python<'_>, state: StateId, token: Token) -> PyResult<Option<StateId>> {
        Ok(self.0.run(py, |engine| engine.step(state, token.0))?.map(|anchor| anchor.id))
    }

    fn mask<'py>(&self, py: Python<'py>, state: StateId) -> PyResult<Bound<'py, PyBytes>> {
        let row = self.0.row(py, state)?;
        let mut words = vec![0u32; self.0.vocab.words()];
        row.write(&mut words);
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        Ok(PyBytes::new(py, &bytes))
    }

    #[pyo3(signature = (state, rows, row = 0))]
    fn fill_bitmask(&self, py: Python<'_>, state: StateId, rows: &Bound<'_, PyAny>, row: usize) -> PyResult<()> {
        let mask = self.0.row(py, state)?;
        Rows::of(rows)?.write(py, row, &[mask], self.0.vocab.words())
    }

    fn is_accepting(&self, py: Python<'_>, state: StateId) -> PyResult<bool> {
        self.0.run(py, |engine| engine.is_accepting(state))
    }

    fn tokens_to_end(&self, py: Python<'_>, state: StateId) -> PyResult<usize> {
        Ok(self.shortest_completion(py, state)?.len())
    }

    fn shortest_completion(&self, py: Python<'_>, state: StateId) -> PyResult<Vec<u32>> {
        self.0.run(py, |engine| engine.shortest_completion(state))
    }

    /// The arrays become a `grammarspec.frozen.FrozenConstraint`, little-endian as numpy reads them there.
    #[pyo3(signature = (*, max_states = 65_536, max_classes = 32_768, max_table = 67_108_864, max_pool = 268_435_456))]
    fn freeze<'py>(
        &self,
        py: Python<'py>,
        max_states: usize,
        max_classes: usize,
        max_table: usize,
        max_pool: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        if max_classes > MOST_CLASSES {
            return Err(PyValueError::new_err(format!(
                "max_classes must be at most {MOST_CLASSES}, not {max_classes}"
            )));
        }
        let class = py.import("grammarspec.frozen")?.getattr("FrozenConstraint")?;
        let bounds = Bounds { max_states, max_classes, max_table, max_pool };
        let start = self.0.start().id;
        let made = self.0.at_length(py, |engine| engine.freeze(start, &bounds)).or_raise(py)?;
        let vocab = &self.0.vocab;
        let parts = PyDict::new(py);
        parts.set_item("class_of", little_endian(py, &made.class_of, i16::to_le_bytes)?)?;
        parts.set_item("next", little_endian(py, &made.next, i32::to_le_bytes)?)?;
        parts.set_item("mask_row", little_endian(py, &made.mask_row, i32::to_le_bytes)?)?;
        parts.set_item("pool", little_endian(py, &made.pool, u32::to_le_bytes)?)?;
        parts.set_item("accepting", PyBytes::new(py, &made.accepting))?;
        parts.set_item("terminated", made.terminated)?;
        parts.set_item("classes", made.classes)?;
        parts.set_item("vocabulary", format!("{:016x}", vocab.fingerprint()))?;
        class.call_method("from_parts", (), Some(&parts))
    }

    /// The states that are returned are held until the call ends only; their ids are never given to others.
    fn successors<'py>(
        &self,
        py: Python<'py>,
        state: StateId,
        most: usize,
    ) -> PyResult<(Bound<'py, PyBytes>, Vec<StateId>)> {
        let found = self.0.at_length(py, |engine| engine.successors(state, most)).or_raise(py)?;
        let states = found.states.iter().map(|anchor| anchor.id).collect();
        Ok((little_endian(py, &found.of, i32::to_le_bytes)?, states))
    }

    fn pin(&self, py: Python<'_>, states: Vec<StateId>) -> PyResult<Pin> {
        let anchors: Result<Vec<_>, Error> = states.into_iter().map(|s| self.0.anchor(s)).collect();
        Ok(Pin { anchors: Mutex::new(anchors.or_raise(py)?) })
    }

    fn collect(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.at_length(py, |engine| Ok(engine.collect())).or_raise(py)
    }

    /// Without waiting: `None` while another thread has the engine.
    #[getter]
    fn memory(&self) -> Option<usize> {
        self.0.memory()
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for (name, value) in self.0.run(py, |engine| Ok(engine.stats()))? {
            out.set_item(name, value)?;
        }
        Ok(out)
    }
}

/// Numbers as bytes.
fn little_endian<'py, T: Copy, const N: usize>(
    py: Python<'py>,
    numbers: &[T],
    bytes: impl Fn(T) -> [u8; N],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, numbers.len() * N, |out| {
        out.chunks_exact_mut(N).zip(numbers).for_each(|(out, &number)| out.copy_from_slice(&bytes(number)));
        Ok(())
    })
}

#[pyclass(frozen, module = "grammarspec._compiler")]
pub(super) struct Pin {
    anchors: Mutex<Vec<Arc<Anchor>>>,
}

#[pymethods]
impl Pin {
    fn release(&self) {
        self.anchors.lock().clear();
    }
}

#[pyfunction]
#[pyo3(signature = (
    grammar, vocabulary, max_states, max_memory, max_steps, max_depth, timeout, cancel, max_call_steps = None
))]
#[allow(clippy::too_many_arguments)]
pub(super) fn compile(
    py: Python<'_>,
    grammar: &Grammar,
    vocabulary: &VocabularyIndex,
    max_states: usize,
    max_memory: usize,
    max_steps: u64,
    max_depth: usize,
    timeout: Option<f64>,
    cancel: Option<PyRef<'_, CancelToken>>,
    max_call_steps: Option<u64>,
) -> PyResult<Constraint> {
    // seconds beyond what a duration holds are no limit
    let timeout = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let limits = Limits { max_states, max_memory, max_steps, max_call_steps, max_depth, timeout };
    let cancel = cancel.map(|c| c.0.clone());
    let (ir, index) = (grammar.0.clone(), vocabulary.0.clone());
    let made = detached(py, || catching(|| index.compile(ir, limits, cancel)));
    Ok(Constraint(Shared::new(made.or_raise(py)?)))
}
