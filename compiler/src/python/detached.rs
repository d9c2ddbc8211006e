//! Work without the GIL, so that other Python threads run meanwhile; and forks, which wait until there is none.
//!
//! A forked process has the memory of its parent, but only the thread that forked. A lock that another thread held would
//! never be released there. So a fork waits for the work of other threads, which is bounded, and new work for the fork.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;

static AT_WORK: AtomicUsize = AtomicUsize::new(0);
/// Threads that fork.
static FORKING: AtomicUsize = AtomicUsize::new(0);

/// How often a fork looks whether work has ended, and work whether the fork has.
const PAUSE: Duration = Duration::from_micros(200);

/// Work that ends when this is dropped.
struct Work;

impl Work {
    /// Begins as soon as no thread forks.
    fn begin(py: Python<'_>) -> Work {
        loop {
            AT_WORK.fetch_add(1, Ordering::SeqCst);
            let work = Work;
            if FORKING.load(Ordering::SeqCst) == 0 {
                return work;
            }
            drop(work);
            py.detach(|| sleep(PAUSE));
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        AT_WORK.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs `f` without the GIL.
pub(super) fn detached<R: Send>(py: Python<'_>, f: impl FnOnce() -> R + Send) -> R {
    let work = Work::begin(py);
    let answer = py.detach(f);
    drop(work);
    answer
}

#[pyfunction]
fn before_fork(py: Python<'_>) {
    FORKING.fetch_add(1, Ordering::SeqCst);
    while AT_WORK.load(Ordering::SeqCst) > 0 {
        py.detach(|| sleep(PAUSE));
    }
}

#[pyfunction]
fn after_fork_in_parent() {
    FORKING.fetch_sub(1, Ordering::SeqCst);
}

#[pyfunction]
fn after_fork_in_child() {
    FORKING.store(0, Ordering::SeqCst); // other threads that were about to fork are not here
}

/// Has Python call what a fork needs, where there are forks.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let Ok(register) = py.import("os")?.getattr("register_at_fork") else { return Ok(()) };
    let handlers = PyDict::new(py);
    handlers.set_item("before", wrap_pyfunction!(before_fork, module)?)?;
    handlers.set_item("after_in_parent", wrap_pyfunction!(after_fork_in_parent, module)?)?;
    handlers.set_item("after_in_child", wrap_pyfunction!(after_fork_in_child, module)?)?;
    register.call((), Some(&handlers))?;
    Ok(())
}
