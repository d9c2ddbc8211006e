//! The rows of many states at once, on several threads: those of different constraints side by side.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rayon_core::{ThreadPool, ThreadPoolBuilder};

use super::{Constraint, StateId};
use crate::error::Result;
use crate::mask::Row;

/// The row of each job's state, in the order of the jobs. Rows that are not known yet are computed by at most `threads`
/// threads (0: as many as there are cores), those of one constraint by one thread. Ends with the first error that is
/// met.
pub fn rows(jobs: &[(&Constraint, StateId)], threads: usize) -> Result<Vec<Arc<Row>>> {
    let found: Vec<OnceLock<Arc<Row>>> = jobs.iter().map(|_| OnceLock::new()).collect();
    let mut cold = Vec::new();
    for (i, (constraint, state)) in jobs.iter().enumerate() {
        match constraint.cached_row(*state) {
            Some(row) => _ = found[i].set(row),
            None => cold.push(i),
        }
    }
    compute_rows(jobs, threads, cold, &|i, row| _ = found[i].set(row))?;
    Ok(found.into_iter().map(|row| row.into_inner().expect("every row was found")).collect())
}

/// Calls `tell(i, row)` with the row of each of the jobs `cold`.
fn compute_rows(
    jobs: &[(&Constraint, StateId)],
    threads: usize,
    mut cold: Vec<usize>,
    tell: &(dyn Fn(usize, Arc<Row>) + Sync),
) -> Result<()> {
    let compute = |of: &[usize]| of.iter().try_for_each(|&i| jobs[i].0.lock().row(jobs[i].1).map(|row| tell(i, row)));
    cold.sort_by_key(|&i| std::ptr::from_ref(jobs[i].0));
    let mut groups: Vec<&[usize]> = cold.chunk_by(|&a, &b| std::ptr::eq(jobs[a].0, jobs[b].0)).collect();
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
                next.store(groups.len(), Ordering::Relaxed); // the other threads can stop
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

/// A pool of threads that wait for work: starting them anew takes longer than most batches. `None` if the system gives
/// no threads.
fn pool(threads: usize) -> Option<Arc<ThreadPool>> {
    /// The pool and the process that started it: a forked process has the pool's memory but not its threads.
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
