//! Continuations: interned sets of stacks, each a node of a graph-structured stack (Tomita 1985; Scott and Johnstone
//! 2010).
//!
//! A continuation is a set of frames, each a position to return to and the continuation below it. All callers of a rule
//! at one point of the text share one continuation, and frames that return to the same position are merged into one,
//! over the union of their continuations. So a set of exponentially many stacks stays a small graph. Left recursion is
//! no cycle in it: see `predict.rs`.

use rustc_hash::FxHashMap;

use super::instances::Instance;
use super::position::PosId;
use crate::ir::UNBOUNDED;
use crate::recursion::deep;
use crate::regular::{Counts, Saturated};

/// An interned continuation, by its number.
pub type Stack = u32;

/// Stands in frames whose callee does not matter, because it is not left-recursive.
pub const NO_CALLEE: Instance = Instance::MAX;

/// A stack that is cut off: nothing is known below. It occurs only in footprints, the keys of masks.
pub const ANY: Stack = 0;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Frame {
    /// The rule that was called, if it is left-recursive; else `NO_CALLEE`.
    pub callee: Instance,
    /// Where the caller goes on.
    pub back: PosId,
    /// The caller's continuation.
    pub below: Stack,
}

pub struct Continuations {
    frames: Vec<Box<[Frame]>>,
    ids: FxHashMap<Box<[Frame]>, Stack>,
    unions: FxHashMap<(Stack, Stack), Stack>,
    /// Truncated and saturated forms, by depth.
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

    /// Frames that have been interned, counted twice: a measure of work.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The continuation with one frame.
    pub fn push(&mut self, frame: Frame) -> Stack {
        self.intern(vec![frame])
    }

    /// The continuation with these frames; those that return to the same position are merged.
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

    /// The stacks of both; `ANY` if one of them is `ANY`.
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

    /// The stacks of all of some continuations, of which there is one at least.
    pub fn union_of(&mut self, mut stacks: impl Iterator<Item = Stack>) -> Stack {
        let first = stacks.next().expect("there is one");
        let Some(second) = stacks.next() else { return first };
        let Some(third) = stacks.next() else { return self.union(first, second) };
        let all: Vec<Stack> = [first, second, third].into_iter().chain(stacks).collect();
        if all.contains(&ANY) {
            return ANY;
        }
        let frames = all.iter().flat_map(|&stack| self.frames[stack as usize].iter().copied()).collect();
        self.of_frames(frames)
    }

    /// The topmost `depth` frames of every stack, with their positions saturated by `position`, and the least upper
    /// bound of a count that this dropped.
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

    /// Copies a continuation of another table into this one; `position` copies positions.
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
