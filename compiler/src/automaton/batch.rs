//! The rows of many states at once, on several threads: those of different constraints side by side.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rayon_core::{ThreadPool, ThreadPoolBuilder};

use super::{Constraint, StateId};
use crate::error::{Error, Result};
use crate::mask::Row;

/// What the masks of one sequence are asked of: the constraint, the state, and the tokens of a draft, if there is one.
pub struct Job<'a> {
    pub constraint: &'a Constraint,
    pub state: StateId,
    pub draft: &'a [u32],
}

/// The rows of one job, one more than its draft has tokens, and how many of these, from the first on, are allowed.
pub type Rows = (Vec<Arc<Row>>, usize);

/// The rows of each job, in the order of the jobs, each with an error of its own. Rows that are not known yet are
/// computed by at most `threads` threads (0: as many as there are cores), those of one constraint by one thread.
pub fn rows(jobs: &[Job], threads: usize) -> Vec<Result<Rows>> {
    let found: Vec<OnceLock<Result<Rows>>> = jobs.iter().map(|_| OnceLock::new()).collect();
    let mut cold = Vec::new();
    for (i, job) in jobs.iter().enumerate() {
        match job.known() {
            Some(rows) => _ = found[i].set(rows),
            None => cold.push(i),
        }
    }
    compute_rows(jobs, threads, cold, &|i, rows| _ = found[i].set(rows));
    found.into_iter().map(|rows| rows.into_inner().expect("every job was done")).collect()
}

impl Job<'_> {
    /// The rows, if they are found at once.
    fn known(&self) -> Option<Result<Rows>> {
        if self.draft.is_empty() {
            self.constraint.cached_row(self.state).map(|row| Ok((vec![row], 0)))
        } else {
            self.constraint.briefly(|engine| engine.draft_rows(self.state, self.draft))
        }
    }

    fn compute(&self) -> Result<Rows> {
        let mut engine = self.constraint.lock();
        let rows = engine.guarded(|engine| match self.draft {
            [] => engine.row(self.state).map(|row| (vec![row], 0)),
            draft => engine.draft_rows(self.state, draft),
        });
        if rows.as_ref().is_err_and(Error::ends_work) {
            engine.collect(); // what the call has made is of no use
        }
        rows
    }
}

/// Calls `tell(i, rows)` with what each of the jobs `cold` gives.
fn compute_rows(jobs: &[Job], threads: usize, mut cold: Vec<usize>, tell: &(dyn Fn(usize, Result<Rows>) + Sync)) {
    let compute = |of: &[usize]| of.iter().for_each(|&i| tell(i, jobs[i].compute()));
    let same = |a: usize, b: usize| std::ptr::eq(jobs[a].constraint, jobs[b].constraint);
    cold.sort_by_key(|&i| std::ptr::from_ref(jobs[i].constraint));
    let mut groups: Vec<&[usize]> = cold.chunk_by(|&a, &b| same(a, b)).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    if groups.len() < 2 || threads == 1 {
        return compute(&cold); // without asking how many cores there are, which takes longer than most batches
    }
    let workers = if threads == 0 { cores() } else { threads }.min(groups.len());
    if workers < 2 {
        return compute(&cold);
    }
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
            compute(group);
        }
    };
    match pool(workers - 1) {
        Some(pool) => pool.in_place_scope(|scope| {
            (1..workers).for_each(|_| scope.spawn(|_| work()));
            work();
        }),
        None => work(),
    }
}

/// How many cores there are, asked once: the system reads files to tell.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
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
