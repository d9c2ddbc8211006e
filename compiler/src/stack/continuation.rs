//! Continuations: interned sets of stacks.
//!
//! A continuation is a set of frames (where to return to, and the continuation there). All callers of a rule at
//! one point share one continuation, and frames that return to the same place are merged with their
//! continuations united, so that a set of exponentially many stacks stays a small acyclic graph.

use rustc_hash::FxHashMap;

use super::instances::Instance;
use super::position::PosId;
use crate::deep;
use crate::ir::UNBOUNDED;
use crate::regular::{Counts, Saturated};

/// Id of an interned continuation.
pub type Stack = u32;

/// The callee of a frame does not matter (the callee is not left-recursive).
pub const NO_CALLEE: Instance = Instance::MAX;

/// A stack cut off: nothing is known below. Only in the keys of masks.
pub const ANY: Stack = 0;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Frame {
    /// The rule that was called, where it is left-recursive; else `NO_CALLEE`.
    pub callee: Instance,
    pub back: PosId,
    pub below: Stack,
}

pub struct Continuations {
    frames: Vec<Box<[Frame]>>,
    ids: FxHashMap<Box<[Frame]>, Stack>,
    unions: FxHashMap<(Stack, Stack), Stack>,
    /// Truncated and saturated forms by depth.
    cut: FxHashMap<(Stack, u32, Counts), (Stack, u32)>,
    size: usize,
}

impl Default for Continuations {
    fn default() -> Self {
        Continuations {
            frames: vec![Box::new([])], // ANY
            ids: FxHashMap::default(),
            unions: FxHashMap::default(),
            cut: FxHashMap::default(),
            size: 0,
        }
    }
}

impl Continuations {
    pub fn frames(&self, k: Stack) -> &[Frame] {
        &self.frames[k as usize]
    }

    /// Bytes held, roughly.
    pub fn memory(&self) -> usize {
        self.frames.len() * 64 + self.size * 24 + (self.unions.len() + self.cut.len()) * 24
    }

    /// The continuation with one frame.
    pub fn push(&mut self, frame: Frame) -> Stack {
        self.intern(vec![frame])
    }

    /// The continuation with these frames, those that return to the same place merged.
    pub fn of_frames(&mut self, mut frames: Vec<Frame>) -> Stack {
        frames.sort_unstable();
        frames.dedup();
        let mut out: Vec<Frame> = Vec::with_capacity(frames.len());
        for f in frames {
            match out.last_mut() {
                Some(last) if (last.callee, last.back) == (f.callee, f.back) => {
                    last.below = deep(|| self.union(last.below, f.below));
                }
                _ => out.push(f),
            }
        }
        self.intern(out)
    }

    fn intern(&mut self, frames: Vec<Frame>) -> Stack {
        if let Some(&id) = self.ids.get(&frames[..]) {
            return id;
        }
        let id = self.frames.len() as Stack;
        let frames: Box<[Frame]> = frames.into();
        self.size += frames.len() * 2;
        self.frames.push(frames.clone());
        self.ids.insert(frames, id);
        id
    }

    /// The stacks of both. `ANY` swallows the rest: nothing is known of it.
    pub fn union(&mut self, a: Stack, b: Stack) -> Stack {
        if a == b {
            return a;
        }
        if a == ANY || b == ANY {
            return ANY;
        }
        let key = (a.min(b), a.max(b));
        if let Some(&u) = self.unions.get(&key) {
            return u;
        }
        let mut all = self.frames[a as usize].to_vec();
        all.extend_from_slice(&self.frames[b as usize]);
        let u = self.of_frames(all);
        self.unions.insert(key, u);
        u
    }

    /// The topmost `depth` frames of every stack, their positions saturated by `position`, and the least bound
    /// that this dropped.
    pub fn truncate(
        &mut self,
        k: Stack,
        depth: u32,
        counts: Counts,
        position: &mut dyn FnMut(PosId) -> Saturated,
    ) -> (Stack, u32) {
        if depth == 0 || k == ANY {
            return (ANY, UNBOUNDED);
        }
        if let Some(&t) = self.cut.get(&(k, depth, counts)) {
            return t;
        }
        let mut frames: Vec<Frame> = self.frames[k as usize].to_vec();
        let mut dropped = UNBOUNDED;
        for f in &mut frames {
            if !self.is_bottom(*f) {
                let below = deep(|| self.truncate(f.below, depth - 1, counts, position));
                let back = position(f.back);
                (f.below, f.back) = (below.0, back.0);
                dropped = dropped.min(below.1).min(back.1);
            }
        }
        let t = (self.of_frames(frames), dropped);
        self.cut.insert((k, depth, counts), t);
        t
    }

    /// Whether the frame is the end of the whole text.
    pub fn is_bottom(&self, f: Frame) -> bool {
        f.back == super::position::BOTTOM
    }

    /// Copies a continuation of another table into this one.
    pub fn import(
        &mut self,
        from: &Continuations,
        k: Stack,
        position: &mut dyn FnMut(PosId) -> PosId,
        done: &mut FxHashMap<Stack, Stack>,
    ) -> Stack {
        if k == ANY {
            return ANY;
        }
        if let Some(&id) = done.get(&k) {
            return id;
        }
        let frames: Vec<Frame> = from
            .frames(k)
            .iter()
            .map(|f| {
                let below = deep(|| self.import(from, f.below, position, done));
                Frame { back: position(f.back), below, ..*f }
            })
            .collect();
        let id = self.of_frames(frames);
        done.insert(k, id);
        id
    }
}
