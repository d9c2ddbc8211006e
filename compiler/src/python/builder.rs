//! `IrBuilder`: what the grammar builder of Python is made on.

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use super::detached::detached;
use super::errors::OrRaise;
use super::grammar::Grammar;
use crate::ir::codes::op;
use crate::ir::{self, UNBOUNDED};

#[pyclass(subclass, module = "grammarspec._compiler")]
pub(super) struct IrBuilder(ir::IrBuilder);

/// A text in UTF-8.
fn utf8<'a>(text: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    match text.cast::<PyString>() {
        Ok(text) => Ok(text.to_str()?.as_bytes()),
        Err(_) => Ok(text.cast::<PyBytes>()?.as_bytes()),
    }
}

impl IrBuilder {
    fn add(&mut self, py: Python<'_>, op: u32, operands: &[u32]) -> PyResult<u32> {
        self.0.node(op, operands, &[]).or_raise(py)
    }

    /// A node of several others; of one, that one.
    fn joined(&mut self, op: u32, nodes: &Bound<'_, PyTuple>) -> PyResult<u32> {
        let operands: smallvec::SmallVec<[u32; 8]> =
            nodes.iter_borrowed().map(|node| node.extract::<u32>()).collect::<PyResult<_>>()?;
        match operands[..] {
            [node] => Ok(node),
            _ => self.add(nodes.py(), op, &operands),
        }
    }
}

#[pymethods]
impl IrBuilder {
    #[new]
    #[pyo3(signature = (*_arguments, **_options))]
    fn new(_arguments: &Bound<'_, PyTuple>, _options: Option<&Bound<'_, PyDict>>) -> Self {
        IrBuilder(ir::IrBuilder::default())
    }

    #[getter]
    fn size(&self) -> usize {
        self.0.size()
    }

    fn take_over(&mut self, mut other: PyRefMut<'_, IrBuilder>) {
        self.0 = other.0.fork();
    }

    fn literal(&mut self, text: &Bound<'_, PyAny>) -> PyResult<u32> {
        Ok(self.0.literal(utf8(text)?))
    }

    /// The texts are read first: reading them may run code that asks this builder for nodes.
    fn words(slf: &Bound<'_, Self>, texts: &Bound<'_, PyAny>) -> PyResult<u32> {
        let texts = texts.try_iter()?.map(|text| Ok(utf8(&text?)?.into())).collect::<PyResult<_>>()?;
        Ok(slf.borrow_mut().0.words(texts))
    }

    fn node(&mut self, py: Python<'_>, op: u32, operands: Vec<u32>) -> PyResult<u32> {
        self.add(py, op, &operands)
    }

    #[pyo3(signature = (*nodes))]
    fn seq(&mut self, nodes: &Bound<'_, PyTuple>) -> PyResult<u32> {
        self.joined(op::SEQ, nodes)
    }

    #[pyo3(signature = (*nodes))]
    fn alt(&mut self, nodes: &Bound<'_, PyTuple>) -> PyResult<u32> {
        self.joined(op::ALT, nodes)
    }

    #[pyo3(signature = (*nodes))]
    fn both(&mut self, nodes: &Bound<'_, PyTuple>) -> PyResult<u32> {
        self.joined(op::BOTH, nodes)
    }

    fn repeat(&mut self, node: u32, least: &Bound<'_, PyAny>, most: Option<&Bound<'_, PyAny>>) -> PyResult<u32> {
        let count = |count: &Bound<'_, PyAny>| match count.extract::<u32>() {
            Ok(count) if count < UNBOUNDED => Ok(count),
            Err(error) if !error.is_instance_of::<PyOverflowError>(count.py()) => Err(error),
            _ => Err(PyOverflowError::new_err(format!("a repetition count must be from 0 to {}", UNBOUNDED - 1))),
        };
        let operands = [node, count(least)?, most.map_or(Ok(UNBOUNDED), count)?];
        self.add(least.py(), op::REPEAT, &operands)
    }

    fn optional(&mut self, py: Python<'_>, node: u32) -> PyResult<u32> {
        self.add(py, op::REPEAT, &[node, 0, 1])
    }

    fn complement(&mut self, py: Python<'_>, node: u32) -> PyResult<u32> {
        self.add(py, op::COMPLEMENT, &[node])
    }

    fn terminal(&mut self, py: Python<'_>, node: u32) -> PyResult<u32> {
        self.add(py, op::TERMINAL, &[node])
    }

    #[pyo3(signature = (name, kinds = 0))]
    fn rule(&mut self, py: Python<'_>, name: String, kinds: u8) -> PyResult<u32> {
        self.0.rule(name, kinds).or_raise(py)
    }

    fn define(&mut self, py: Python<'_>, rule: u32, body: u32) -> PyResult<()> {
        self.0.define(rule, body).or_raise(py)
    }

    fn define_others(&mut self, body: u32) {
        self.0.define_others(body);
    }

    fn call(&mut self, py: Python<'_>, rule: u32) -> PyResult<u32> {
        self.add(py, op::CALL, &[rule])
    }

    fn embed(&mut self, py: Python<'_>, grammar: PyRef<'_, Grammar>) -> PyResult<u32> {
        self.0.embed(&grammar.0).or_raise(py)
    }

    fn build(&self, py: Python<'_>, start: u32) -> PyResult<Grammar> {
        let described = &self.0;
        Ok(Grammar(detached(py, || described.build(start)).or_raise(py)?.into()))
    }
}
