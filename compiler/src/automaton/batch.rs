//! The rows of many states at once, on several threads: those of different constraints side by side.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use rayon_core::{ThreadPool, ThreadPoolBuilder};

use super::{Anchor, Constraint};
use crate::error::Result;
use crate::mask::Row;

/// Calls `write(i, row)` for each job. Rows that are not at hand are computed by at most `threads` threads (0: as many as there
/// are cores), one constraint's by one of them. Ends with an error as soon as one is met.
pub fn rows(
    jobs: &[(Arc<Constraint>, Arc<Anchor>)],
    threads: usize,
    write: &(dyn Fn(usize, &Row) + Sync),
) -> Result<()> {
    let mut cold = Vec::new();
    for (i, (constraint, state)) in jobs.iter().enumerate() {
        match constraint.cached_row(state.id) {
            Some(row) => write(i, &row),
            None => cold.push(i),
        }
    }
    let compute = |of: &[usize]| of.iter().try_for_each(|&i| jobs[i].0.row(jobs[i].1.id).map(|row| write(i, &row)));
    cold.sort_by_key(|&i| Arc::as_ptr(&jobs[i].0));
    let mut groups: Vec<&[usize]> = cold.chunk_by(|&a, &b| Arc::ptr_eq(&jobs[a].0, &jobs[b].0)).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
    let workers = if threads == 0 { cores() } else { threads }.min(groups.len());
    if workers < 2 {
        return compute(&cold);
    }
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(None);
    let work = || {
        while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = compute(group) {
                next.store(groups.len(), Ordering::Relaxed); // the others need not go on
                failed.lock().get_or_insert(error);
            }
        }
    };
    match pool(workers - 1) {
        Some(pool) => pool.in_place_scope(|scope| {
            (1..workers).for_each(|_| scope.spawn(|_| work()));
            work();
        }),
        None => work(),
    }
    failed.into_inner().map_or(Ok(()), Err)
}

/// Threads that wait for work: to start them anew takes longer than most batches. `None` if the system gives none.
fn pool(threads: usize) -> Option<Arc<ThreadPool>> {
    /// The pool and the process whose it is: a forked one has its memory but not its threads.
    static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);
    let mut pool = POOL.lock();
    let process = std::process::id();
    match &*pool {
        Some((of, known)) if *of == process && known.current_num_threads() >= threads => return Some(known.clone()),
        Some((of, _)) if *of != process => std::mem::forget(pool.take()),
        _ => {}
    }
    let name = |i| format!("grammarspec-{i}");
    let new = Arc::new(ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build().ok()?);
    *pool = Some((process, new.clone()));
    Some(new)
}
