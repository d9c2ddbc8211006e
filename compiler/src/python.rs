//! The Python surface: conversions and error mapping, no logic. Signatures are in `grammarspec/_compiler.pyi`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::automaton::{self, Anchor, ENDED, Index, StateId, spell};
use crate::budget::{Cancel, Limits};
use crate::error::Error;
use crate::ir::{Base, Ir, Node, Parts};
use crate::mask::Row;
use crate::vocabulary::Vocabulary;

/// Bytes that one call for forced text returns at most.
const FORCED_LIMIT: usize = 1 << 16;

/// Logits of a model, at most.
const MOST_TOKENS: usize = 1 << 24;

fn raise(py: Python<'_>, error: Error) -> PyErr {
    let class = match &error {
        Error::Malformed(_) => "GrammarSyntaxError",
        Error::Unsupported(_) => "UnsupportedFeature",
        Error::Unsatisfiable(_) => "Unsatisfiable",
        Error::Limit { .. } => "LimitExceeded",
        Error::Cancelled => "Cancelled",
        Error::Collected(_) => "StateCollected",
    };
    let make = || py.import("grammarspec.errors")?.getattr(class)?.call1((error.to_string(),));
    make().map_or_else(|e| e, PyErr::from_value)
}

trait OrRaise<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for Result<T, Error> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|e| raise(py, e))
    }
}

fn words(data: &[u8]) -> Vec<u32> {
    data.chunks_exact(4).map(|c| u32::from_ne_bytes(c.try_into().expect("4 bytes"))).collect()
}

/// What the builder holds: operations, rules, blob, names, kinds, the start; and the number of nodes.
type Arrays<'py> =
    (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Vec<String>, Bound<'py, PyBytes>, u32, u32);

#[pyclass(frozen, module = "grammarspec._compiler")]
struct Grammar(Arc<Ir>);

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
        Ok(Grammar(Arc::new(decode().or_raise(py)?)))
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
        other.downcast::<Grammar>().is_ok_and(|o| o.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{Hash, Hasher};
        let mut h = rustc_hash::FxHasher::default();
        self.0.nodes.hash(&mut h);
        self.0.rules.hash(&mut h);
        h.finish()
    }
}

#[pyclass(frozen, module = "grammarspec._compiler")]
struct VocabularyIndex(Index);

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
        let mut texts: Vec<Option<Vec<u8>>> = Vec::new();
        for token in tokens.try_iter()? {
            let token = token?;
            texts.push(if token.is_none() { None } else { Some(token.downcast::<PyBytes>()?.as_bytes().to_vec()) });
        }
        Ok(VocabularyIndex(py.detach(|| {
            let texts = texts.iter().map(|t| t.as_deref());
            Index::new(Vocabulary::new(texts, eos_token_ids, special_token_ids, size))
        })))
    }

    fn without_caches(&self) -> VocabularyIndex {
        VocabularyIndex(self.0.without_caches())
    }

    #[getter]
    fn size(&self) -> usize {
        self.0.vocab.size
    }

    #[getter]
    fn eos_token_ids(&self) -> Vec<u32> {
        self.0.vocab.eos.clone()
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

#[pyclass(frozen, module = "grammarspec._compiler")]
struct CancelToken(Cancel);

#[pymethods]
impl CancelToken {
    #[new]
    fn new() -> Self {
        CancelToken(Arc::new(AtomicBool::new(false)))
    }

    fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Rows of a caller's bitmask: int32[n, words], C-contiguous along the words.
struct Rows {
    start: *mut u32,
    count: usize,
    words: usize,
    /// Words from one row to the next.
    stride: usize,
    /// Keeps a numpy buffer exported while it is held.
    _buffer: Option<PyBuffer<i32>>,
}

// SAFETY: the pointer is into memory that `_buffer`, or the caller's tensor, keeps alive.
unsafe impl Send for Rows {}
unsafe impl Sync for Rows {}

impl Rows {
    fn of(rows: &Bound<'_, PyAny>) -> PyResult<Rows> {
        let wrong = || {
            PyTypeError::new_err(
                "rows must be an int32 array or CPU tensor of shape (n, words), contiguous in its last dimension",
            )
        };
        if let Ok(buffer) = PyBuffer::<i32>::get(rows) {
            let (shape, strides) = (buffer.shape(), buffer.strides());
            let (count, words, stride) = match (shape, strides) {
                ([n, w], [s, 4]) if *s >= 0 => (*n, *w, *s as usize / 4),
                ([w], [4]) => (1, *w, *w),
                _ => return Err(wrong()),
            };
            if buffer.readonly() {
                return Err(PyTypeError::new_err("rows must be writable"));
            }
            return Ok(Rows { start: buffer.buf_ptr().cast(), count, words, stride, _buffer: Some(buffer) });
        }
        if !rows.hasattr("data_ptr")? {
            return Err(wrong());
        }
        let (shape, strides): (Vec<usize>, Vec<usize>) =
            (rows.getattr("shape")?.extract()?, rows.call_method0("stride")?.extract()?);
        let is_int32 = rows.getattr("dtype")?.str()?.to_cow()? == "torch.int32";
        let on_cpu = rows.getattr("device")?.getattr("type")?.str()?.to_cow()? == "cpu";
        let (count, words, stride) = match (&shape[..], &strides[..]) {
            (&[n, w], &[s, 1]) => (n, w, s),
            (&[w], &[1]) => (1, w, w),
            _ => return Err(wrong()),
        };
        if !is_int32 || !on_cpu {
            return Err(wrong());
        }
        let start: usize = rows.call_method0("data_ptr")?.extract()?;
        Ok(Rows { start: start as *mut u32, count, words, stride, _buffer: None })
    }

    fn check(&self, row: usize, needed: usize) -> PyResult<()> {
        if row >= self.count {
            return Err(PyIndexError::new_err(format!("row {row} of {} rows", self.count)));
        }
        if self.words < needed {
            return Err(PyValueError::new_err(format!(
                "rows of {} words are too narrow for the vocabulary, which needs {needed}",
                self.words
            )));
        }
        Ok(())
    }

    /// SAFETY: `row` was checked, and nobody else writes it now.
    unsafe fn write(&self, row: usize, mask: &Row) {
        let out = unsafe { std::slice::from_raw_parts_mut(self.start.add(row * self.stride), self.words) };
        mask.write(out);
    }
}

#[pyclass(frozen, module = "grammarspec._compiler")]
struct Constraint(Arc<automaton::Constraint>);

impl Constraint {
    /// Runs `f` at once where the lock is free, else without the GIL, so that a long computation of another
    /// thread holds up only those who wait for it.
    fn run<R: Send>(&self, py: Python<'_>, f: impl FnOnce(&automaton::Constraint) -> R + Send) -> R {
        if self.0.is_free() { f(&self.0) } else { py.detach(|| f(&self.0)) }
    }

    fn row(&self, py: Python<'_>, state: StateId) -> PyResult<Arc<Row>> {
        match self.0.cached_row(state) {
            Some(row) => Ok(row),
            None => py.detach(|| self.0.row(state)).or_raise(py),
        }
    }
}

#[pymethods]
impl Constraint {
    fn is_for(&self, vocabulary: &VocabularyIndex) -> bool {
        self.0.vocab.same_as(&vocabulary.0.vocab)
    }

    #[getter]
    fn start(&self) -> StateId {
        self.0.start().id
    }

    #[pyo3(name = "matcher")]
    fn matcher(slf: &Bound<'_, Self>) -> Matcher {
        let constraint = slf.get().0.clone();
        let path = vec![constraint.start()];
        Matcher { constraint: Constraint(constraint), path: Mutex::new(path), target: Mutex::new(None) }
    }

    fn step(&self, py: Python<'_>, state: StateId, token: u32) -> PyResult<Option<StateId>> {
        Ok(self.run(py, |c| c.step(state, token)).or_raise(py)?.map(|a| a.id))
    }

    fn mask<'py>(&self, py: Python<'py>, state: StateId) -> PyResult<Bound<'py, PyBytes>> {
        let row = self.row(py, state)?;
        let mut words = vec![0u32; self.0.vocab.words()];
        row.write(&mut words);
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        Ok(PyBytes::new(py, &bytes))
    }

    #[pyo3(signature = (state, rows, row = 0))]
    fn fill_bitmask(&self, py: Python<'_>, state: StateId, rows: &Bound<'_, PyAny>, row: usize) -> PyResult<()> {
        let rows = Rows::of(rows)?;
        rows.check(row, self.0.vocab.words())?;
        let mask = self.row(py, state)?;
        // SAFETY: checked just now; the GIL is held.
        unsafe { rows.write(row, &mask) };
        Ok(())
    }

    fn is_accepting(&self, py: Python<'_>, state: StateId) -> PyResult<bool> {
        self.run(py, |c| c.is_accepting(state)).or_raise(py)
    }

    fn tokens_to_end(&self, py: Python<'_>, state: StateId) -> PyResult<usize> {
        Ok(self.shortest_completion(py, state)?.len())
    }

    fn shortest_completion(&self, py: Python<'_>, state: StateId) -> PyResult<Vec<u32>> {
        py.detach(|| self.0.shortest_completion(state)).or_raise(py)
    }

    fn pin(&self, py: Python<'_>, states: Vec<StateId>) -> PyResult<Pin> {
        let anchors: Result<Vec<_>, Error> = states.into_iter().map(|s| self.0.anchor(s)).collect();
        Ok(Pin { anchors: Mutex::new(anchors.or_raise(py)?) })
    }

    fn collect(&self, py: Python<'_>) -> usize {
        py.detach(|| self.0.collect())
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for (name, value) in self.0.stats() {
            out.set_item(name, value)?;
        }
        Ok(out)
    }
}

#[pyclass(frozen, module = "grammarspec._compiler")]
struct Pin {
    anchors: Mutex<Vec<Arc<Anchor>>>,
}

#[pymethods]
impl Pin {
    fn release(&self) {
        self.anchors.lock().clear();
    }
}

#[pyclass(frozen, module = "grammarspec._compiler")]
struct Matcher {
    constraint: Constraint,
    /// The state after each accepted token, the start first.
    path: Mutex<Vec<Arc<Anchor>>>,
    /// The array that was filled last, so that filling it again asks Python for nothing.
    target: Mutex<Option<(Py<PyAny>, Rows)>>,
}

impl Matcher {
    fn last(&self) -> StateId {
        self.path.lock().last().expect("the start is never dropped").id
    }

    /// Writes masks into rows from `first` on.
    fn write(&self, rows: &Bound<'_, PyAny>, first: usize, masks: &[Arc<Row>]) -> PyResult<()> {
        let write = |out: &Rows| {
            out.check(first.saturating_add(masks.len() - 1), self.constraint.0.vocab.words())?;
            for (i, mask) in masks.iter().enumerate() {
                // SAFETY: checked just now; the GIL is held.
                unsafe { out.write(first + i, mask) };
            }
            Ok(())
        };
        let mut target = self.target.lock();
        if let Some((array, out)) = target.as_ref()
            && array.is(rows)
        {
            return write(out);
        }
        let new = Rows::of(rows)?;
        write(&new)?;
        if new._buffer.is_some() {
            *target = Some((rows.clone().unbind(), new));
        }
        Ok(())
    }
}

#[pymethods]
impl Matcher {
    #[pyo3(signature = (rows, row = 0))]
    fn fill_bitmask(&self, py: Python<'_>, rows: &Bound<'_, PyAny>, row: usize) -> PyResult<()> {
        let mask = self.constraint.row(py, self.last())?;
        self.write(rows, row, std::slice::from_ref(&mask))
    }

    #[pyo3(signature = (tokens, rows, row = 0))]
    fn fill_draft_bitmasks(
        &self,
        py: Python<'_>,
        tokens: Vec<u32>,
        rows: &Bound<'_, PyAny>,
        row: usize,
    ) -> PyResult<usize> {
        let state = self.last();
        let (masks, accepted) = self.constraint.run(py, |c| c.draft_rows(state, &tokens)).or_raise(py)?;
        self.write(rows, row, &masks)?;
        Ok(accepted)
    }

    fn accept_token(&self, py: Python<'_>, token: u32) -> PyResult<bool> {
        let state = self.last();
        let next = self.constraint.run(py, |c| c.step(state, token)).or_raise(py)?;
        Ok(match next {
            Some(anchor) => {
                self.path.lock().push(anchor);
                true
            }
            None => false,
        })
    }

    fn accept_tokens(&self, py: Python<'_>, tokens: Vec<u32>) -> PyResult<usize> {
        for (i, &t) in tokens.iter().enumerate() {
            if !self.accept_token(py, t)? {
                return Ok(i);
            }
        }
        Ok(tokens.len())
    }

    fn validate_tokens(&self, py: Python<'_>, tokens: Vec<u32>) -> PyResult<usize> {
        let state = self.last();
        self.constraint.run(py, |c| c.validate(state, &tokens)).or_raise(py)
    }

    fn rollback(&self, n: usize) -> PyResult<()> {
        let mut path = self.path.lock();
        if n >= path.len() {
            return Err(PyValueError::new_err(format!(
                "rollback of {n} tokens; only {} were accepted",
                path.len() - 1
            )));
        }
        let keep = path.len() - n;
        path.truncate(keep);
        Ok(())
    }

    fn fork(&self) -> Matcher {
        Matcher {
            constraint: Constraint(self.constraint.0.clone()),
            path: Mutex::new(self.path.lock().clone()),
            target: Mutex::new(None),
        }
    }

    fn reset(&self) {
        self.path.lock().truncate(1);
    }

    #[getter]
    fn is_accepting(&self, py: Python<'_>) -> PyResult<bool> {
        self.constraint.is_accepting(py, self.last())
    }

    #[getter]
    fn is_terminated(&self) -> bool {
        self.last() == ENDED
    }

    #[pyo3(signature = (after = b"".as_slice()))]
    fn forced_bytes<'py>(&self, py: Python<'py>, after: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let state = self.last();
        let text = self.constraint.run(py, |c| c.forced_bytes(state, after, FORCED_LIMIT)).or_raise(py)?;
        Ok(PyBytes::new(py, &text))
    }

    fn forced_tokens(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let state = self.last();
        let text = self.constraint.run(py, |c| c.forced_bytes(state, &[], FORCED_LIMIT)).or_raise(py)?;
        Ok(spell(&self.constraint.0.vocab, &text, false))
    }

    #[pyo3(signature = (after = b"".as_slice()))]
    fn next_bytes<'py>(&self, py: Python<'py>, after: &[u8]) -> PyResult<(Bound<'py, PyBytes>, bool)> {
        let state = self.last();
        let (bytes, ends) = self.constraint.run(py, |c| c.next_bytes(state, after)).or_raise(py)?;
        Ok((PyBytes::new(py, &bytes), ends))
    }

    #[getter]
    fn state(&self) -> StateId {
        self.last()
    }

    #[getter]
    fn constraint(&self) -> Constraint {
        Constraint(self.constraint.0.clone())
    }
}

#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn compile(
    py: Python<'_>,
    grammar: &Grammar,
    vocabulary: &VocabularyIndex,
    max_states: usize,
    max_memory: usize,
    max_steps: u64,
    max_depth: usize,
    timeout: Option<f64>,
    cancel: Option<PyRef<'_, CancelToken>>,
) -> PyResult<Constraint> {
    let limits = Limits { max_states, max_memory, max_steps, max_depth, timeout: timeout.map(Duration::from_secs_f64) };
    let cancel = cancel.map(|c| c.0.clone());
    let (ir, index) = (grammar.0.clone(), vocabulary.0.clone());
    let made = py.detach(|| automaton::Constraint::new(ir, &index, limits, cancel));
    Ok(Constraint(Arc::new(made.or_raise(py)?)))
}

/// Row `i` gets the mask of matcher `i`. `threads`: 0 for as many as there are cores.
#[pyfunction]
#[pyo3(signature = (matchers, rows, threads = 0))]
fn fill_bitmasks(
    py: Python<'_>,
    matchers: &Bound<'_, PyList>,
    rows: &Bound<'_, PyAny>,
    threads: usize,
) -> PyResult<()> {
    let rows = Rows::of(rows)?;
    let mut jobs: Vec<(Arc<automaton::Constraint>, Arc<Anchor>)> = Vec::with_capacity(matchers.len());
    for (i, matcher) in matchers.iter().enumerate() {
        let matcher = matcher.downcast::<Matcher>()?.get();
        rows.check(i, matcher.constraint.0.vocab.words())?;
        jobs.push((
            matcher.constraint.0.clone(),
            matcher.path.lock().last().expect("the start is never dropped").clone(),
        ));
    }
    py.detach(|| {
        // SAFETY: the row was checked, and each job writes another.
        automaton::rows(&jobs, threads, &|i, row| unsafe { rows.write(i, row) })
    })
    .or_raise(py)
}

#[pymodule(gil_used = false)]
fn _compiler(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Grammar>()?;
    module.add_class::<VocabularyIndex>()?;
    module.add_class::<CancelToken>()?;
    module.add_class::<Constraint>()?;
    module.add_class::<Pin>()?;
    module.add_class::<Matcher>()?;
    module.add_function(wrap_pyfunction!(compile, module)?)?;
    module.add_function(wrap_pyfunction!(fill_bitmasks, module)?)?;
    Ok(())
}
