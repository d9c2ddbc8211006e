//! Memory that is not the crate's own: rows of a caller's bitmask, and the heap of the process.
//!
//! All unsafe code of the crate stands in this file.

#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::mask::Row;

/// What the rows of a bitmask lie in.
enum Owner {
    /// An array that exports its memory, which stays where it is as long as this is held.
    Buffer(PyBuffer<i32>),
    /// A tensor on the CPU, and the address of its first word.
    Tensor(#[allow(dead_code, reason = "keeps the memory alive")] Py<PyAny>, usize),
}

/// Rows of a caller's bitmask: int32[n, words], contiguous along the words.
pub(super) struct Rows {
    owner: Owner,
    count: usize,
    words: usize,
    /// Words from one row to the next.
    stride: usize,
}

impl Rows {
    /// The rows of a numpy array, another object with the buffer protocol, or a torch tensor. Raises `TypeError` if it
    /// is not of int32, writable, of one or two dimensions and contiguous in its last one.
    pub(super) fn of(rows: &Bound<'_, PyAny>) -> PyResult<Rows> {
        let wrong = || {
            PyTypeError::new_err(
                "rows must be an int32 array or CPU tensor of shape (n, words), contiguous in its last dimension",
            )
        };
        if let Ok(buffer) = PyBuffer::<i32>::get(rows) {
            let (shape, strides) = (buffer.shape(), buffer.strides());
            let (count, words, stride) = match (shape, strides) {
                ([n, w], [s, 4]) if *s >= 0 && *s % 4 == 0 => (*n, *w, *s as usize / 4),
                ([w], [4]) => (1, *w, *w),
                _ => return Err(wrong()),
            };
            if buffer.readonly() {
                return Err(PyTypeError::new_err("rows must be writable"));
            }
            return Ok(Rows { owner: Owner::Buffer(buffer), count, words, stride });
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
        let address: usize = rows.call_method0("data_ptr")?.extract()?;
        Ok(Rows { owner: Owner::Tensor(rows.clone().unbind(), address), count, words, stride })
    }

    /// Whether the memory stays where it is as long as the rows are held; a tensor may be resized.
    pub(super) fn is_exported(&self) -> bool {
        matches!(self.owner, Owner::Buffer(_))
    }

    /// Raises `IndexError` if there is no such row, `ValueError` if rows have fewer words than are needed.
    pub(super) fn check(&self, row: usize, needed: usize) -> PyResult<()> {
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

    /// Writes masks into the rows from `first` on; bits beyond a mask are cleared. Raises `IndexError` if there are too
    /// few rows, before any is written.
    pub(super) fn write(&self, _py: Python<'_>, first: usize, masks: &[Arc<Row>]) -> PyResult<()> {
        let Some(last) = masks.len().checked_sub(1) else { return Ok(()) };
        self.check(first.saturating_add(last), 0)?;
        let start: *mut u32 = match &self.owner {
            Owner::Buffer(buffer) => buffer.buf_ptr().cast(),
            Owner::Tensor(_, address) => std::ptr::with_exposed_provenance_mut(*address),
        };
        for (i, mask) in masks.iter().enumerate() {
            // SAFETY: the row is one of `count`, which is checked above, so that it lies in the memory that `owner`
            // keeps alive (a tensor must not be resized during a call that fills it). It is aligned and holds int32, of
            // which every value is a u32. The GIL is held, so that no other call writes it now, and the reference ends
            // with this iteration.
            let out = unsafe { std::slice::from_raw_parts_mut(start.add((first + i) * self.stride), self.words) };
            mask.write(out);
        }
        Ok(())
    }
}

/// Notes that so many bytes were freed. Once they are many, free memory goes back to the system: glibc's allocator
/// would keep it, in small pieces.
pub(super) fn count_freed(bytes: usize) {
    static SINCE: AtomicUsize = AtomicUsize::new(0);
    const MUCH: usize = 64 << 20;
    if SINCE.fetch_add(bytes, Ordering::Relaxed) + bytes >= MUCH {
        SINCE.store(0, Ordering::Relaxed);
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        {
            // SAFETY: this is the signature that malloc.h declares.
            unsafe extern "C" {
                fn malloc_trim(pad: usize) -> i32;
            }
            // SAFETY: it touches free memory only, and may be called at any time from any thread.
            unsafe { malloc_trim(0) };
        }
    }
}
