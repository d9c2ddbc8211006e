//! Memory that is not the crate's own: rows of a caller's bitmask, and the heap of the process.
//!
//! All unsafe code of the crate stands in this file.

#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::mask::Row;

/// What the rows of a bitmask lie in.
enum Owner {
    /// An array that exports its memory, which stays where it is as long as this is held.
    Buffer(PyBuffer<i32>),
    /// A tensor on the CPU, and the address of its first word.
    Tensor(#[allow(dead_code, reason = "keeps the memory alive")] Py<PyAny>, usize),
}

/// Rows of a caller's bitmask: int32[n, words], contiguous along the words. They are to be written at once: an array may
/// be changed when Python runs.
pub(super) struct Rows {
    owner: Owner,
    count: usize,
    words: usize,
    /// Words from one row to the next.
    stride: usize,
}

/// Whether a type of numbers is torch's int32, which is remembered as an object: there is one of it.
fn is_int32(dtype: &Bound<'_, PyAny>) -> PyResult<bool> {
    static KNOWN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = dtype.py();
    if KNOWN.get(py).is_some_and(|known| known.is(dtype)) {
        return Ok(true);
    }
    let is = dtype.str()?.to_cow()? == "torch.int32";
    if is && dtype.get_type().name()?.to_cow()? == "dtype" {
        _ = KNOWN.set(py, dtype.clone().unbind());
    }
    Ok(is)
}

/// The error of an object that is no such array.
fn wrong() -> PyErr {
    PyTypeError::new_err(
        "rows must be a writable int32 array or CPU tensor of shape (n, words), contiguous in its last dimension, in \
         which rows do not overlap",
    )
}

impl Rows {
    /// The rows of a numpy array, another object with the buffer protocol, or a torch tensor. Raises `TypeError` if it
    /// is not of int32 in the machine's byte order, writable, of one or two dimensions, and contiguous in its last one.
    pub(super) fn of(rows: &Bound<'_, PyAny>) -> PyResult<Rows> {
        // SAFETY: it is given an object, and looks at its type only.
        let has_buffer = unsafe { pyo3::ffi::PyObject_CheckBuffer(rows.as_ptr()) } == 1;
        let buffer = if has_buffer { PyBuffer::<i32>::get(rows).ok() } else { None };
        let found = match buffer {
            Some(buffer) => Rows::of_buffer(buffer)?,
            None => Rows::of_tensor(rows)?,
        };
        let address = found.start() as usize;
        let is_empty = found.count == 0 || found.words == 0;
        let overlaps = found.count > 1 && found.stride < found.words;
        if overlaps || !is_empty && (address == 0 || !address.is_multiple_of(align_of::<i32>())) {
            return Err(wrong());
        }
        Ok(found)
    }

    fn of_buffer(buffer: PyBuffer<i32>) -> PyResult<Rows> {
        let (count, words, stride) = match (buffer.shape(), buffer.strides()) {
            ([n, w], [s, 4]) if *s >= 0 && *s % 4 == 0 => (*n, *w, *s as usize / 4),
            ([w], [4]) => (1, *w, *w),
            _ => return Err(wrong()),
        };
        let foreign: &[u8] = if cfg!(target_endian = "little") { b">!" } else { b"<" }; // orders of bytes, in formats
        let is_foreign = buffer.format().to_bytes().first().is_some_and(|order| foreign.contains(order));
        if buffer.readonly() || is_foreign {
            Err(wrong())
        } else {
            Ok(Rows { owner: Owner::Buffer(buffer), count, words, stride })
        }
    }

    /// The rows of an object with the methods of torch's tensors.
    fn of_tensor(rows: &Bound<'_, PyAny>) -> PyResult<Rows> {
        let py = rows.py();
        let Some(pointer) = rows.getattr_opt(intern!(py, "data_ptr"))? else { return Err(wrong()) };
        let dtype = rows.getattr(intern!(py, "dtype"))?;
        if !is_int32(&dtype)? || !rows.getattr(intern!(py, "is_cpu"))?.extract::<bool>()? {
            return Err(wrong());
        }
        let shape = rows.getattr(intern!(py, "shape"))?;
        let strides = rows.call_method0(intern!(py, "stride"))?;
        let (count, words, stride) = if let Ok((n, w)) = shape.extract::<(usize, usize)>() {
            let (between, one): (usize, usize) = strides.extract()?;
            if one != 1 {
                return Err(wrong());
            }
            (n, w, between)
        } else if let Ok((w,)) = shape.extract::<(usize,)>() {
            if strides.extract::<(usize,)>()? != (1,) {
                return Err(wrong());
            }
            (1, w, w)
        } else {
            return Err(wrong());
        };
        // the memory of a tensor may have been made smaller than its shape
        let storage = rows.call_method0(intern!(py, "untyped_storage"))?;
        let held: usize = storage.call_method0(intern!(py, "nbytes"))?.extract()?;
        let before: usize = rows.call_method0(intern!(py, "storage_offset"))?.extract()?;
        let last = count.saturating_sub(1).saturating_mul(stride).saturating_add(words);
        if count > 0 && before.saturating_add(last) > held / size_of::<i32>() {
            return Err(wrong());
        }
        let address: usize = pointer.call0()?.extract()?;
        Ok(Rows { owner: Owner::Tensor(rows.clone().unbind(), address), count, words, stride })
    }

    fn start(&self) -> *mut u32 {
        match &self.owner {
            Owner::Buffer(buffer) => buffer.buf_ptr().cast(),
            Owner::Tensor(_, address) => std::ptr::with_exposed_provenance_mut(*address),
        }
    }

    /// Fails unless there are rows up to `last`, of as many words as are needed: with `IndexError` or `ValueError`.
    pub(super) fn check(&self, last: usize, needed: usize) -> PyResult<()> {
        if last >= self.count {
            return Err(PyIndexError::new_err(format!("row {last} of {} rows", self.count)));
        }
        if self.words < needed {
            return Err(PyValueError::new_err(format!(
                "rows of {} words are too narrow for the vocabulary, which needs {needed}",
                self.words
            )));
        }
        Ok(())
    }

    /// Has `write` write a row, which [`Rows::check`] knows to be there.
    pub(super) fn with<R>(&self, _py: Python<'_>, row: usize, write: impl FnOnce(&mut [u32]) -> R) -> R {
        assert!(row < self.count, "rows are checked before they are written");
        // SAFETY: the row is one of `count`, so that it lies in the memory that `owner` keeps alive; `of` has checked
        // that there is so much, that it is aligned, and that rows do not overlap. It holds int32, of which every value
        // is a u32. The GIL has been held since then, so that no other code has moved the memory or writes it now, and
        // the reference ends with this call, which runs no Python.
        let out = unsafe { std::slice::from_raw_parts_mut(self.start().add(row * self.stride), self.words) };
        write(out)
    }

    /// Writes masks into the rows from `first` on; bits beyond a mask are cleared. Raises, before any row is written,
    /// `IndexError` if there are too few, and `ValueError` if they have fewer words than are needed.
    pub(super) fn write(&self, py: Python<'_>, first: usize, masks: &[Arc<Row>], needed: usize) -> PyResult<()> {
        let Some(last) = masks.len().checked_sub(1) else { return Ok(()) };
        self.check(first.saturating_add(last), needed)?;
        masks.iter().enumerate().for_each(|(i, mask)| self.with(py, first + i, |out| mask.write(out)));
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
