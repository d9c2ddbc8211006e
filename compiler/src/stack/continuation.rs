//! Continuations: interned sets of stacks, each a node of a graph-structured stack (Tomita 1985; Scott and Johnstone
//! 2010).
//!
//! A continuation is what lies below a place in the text: the parameter of the rule that the place is in, and a set of
//! frames, each a position to return to and the continuation below it. All callers of a rule at one point of the text
//! share one continuation, and frames that return to the same position, in rules of one parameter, are merged into one,
//! over the union of their continuations. So a set of exponentially many stacks stays a small graph. Left recursion is
//! no cycle in it: see `predict.rs`.
//!
//! The parameter stands here and not in positions, so that all that a rule can read is shared by all values of its
//! parameter: after each member of an object, what may come next is a part of the same expressions.

use std::hash::{Hash, Hasher};

use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use super::instances::{ParamId, UNSET};
use super::position::{BOTTOM, PosId};
use crate::ir::{RuleId, UNBOUNDED};
use crate::recursion::deep;
use crate::regular::{Counts, Saturated};

/// An interned continuation, by its number.
pub type Stack = u32;

/// Stands in frames whose callee does not matter, because it is not left-recursive.
pub const NO_CALLEE: RuleId = RuleId::MAX;

/// A stack that is cut off, below a rule without a parameter: nothing is known of it. Stacks that are cut off have no
/// frames, and occur only in footprints, the keys of masks.
pub const ANY: Stack = 0;

/// The continuation of heads of which it is not known whether they are in the closure, because a cut-off stack was
/// popped: their tokens may be allowed, or not. It has no frames either.
pub const UNSURE: Stack = 1;

/// What a union takes beside the work on its frames, in the measure of [`Continuations::work`].
const UNION: usize = 6;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Frame {
    /// The rule that was called, if it is left-recursive; else `NO_CALLEE`.
    pub callee: RuleId,
    /// Where the caller goes on.
    pub back: PosId,
    /// The caller's continuation.
    pub below: Stack,
}

/// Frames, mostly one.
pub(super) type Frames = SmallVec<[Frame; 4]>;

/// The parameters and frames of continuations, by number. The frames lie one after another, so that a continuation is no
/// allocation of its own.
#[derive(Default)]
struct Nodes {
    params: Vec<ParamId>,
    frames: Vec<Frame>,
    /// For each continuation, where its frames end; those of the next one begin there.
    ends: Vec<u32>,
    /// Whether each is cut off somewhere.
    truncated: Vec<bool>,
}

impl Nodes {
    fn frames(&self, k: Stack) -> &[Frame] {
        let start = if k == 0 { 0 } else { self.ends[k as usize - 1] };
        &self.frames[start as usize..self.ends[k as usize] as usize]
    }

    fn hash_of(param: ParamId, frames: &[Frame]) -> u64 {
        let mut hasher = FxHasher::default();
        (param, frames).hash(&mut hasher);
        hasher.finish()
    }
}

pub struct Continuations {
    nodes: Nodes,
    ids: HashTable<Stack>,
    unions: FxHashMap<(Stack, Stack), Stack>,
    /// Truncated and saturated forms, by depth.
    cut: FxHashMap<(Stack, u32, Counts), (Stack, u32)>,
    work: usize,
}

impl Default for Continuations {
    fn default() -> Self {
        let mut made = Continuations {
            nodes: Nodes::default(),
            ids: HashTable::new(),
            unions: FxHashMap::default(),
            cut: FxHashMap::default(),
            work: 0,
        };
        made.cut_off(UNSET); // ANY
        made.push(UNSET, &[]); // UNSURE, which is not to be found by its frames
        made
    }
}

impl Continuations {
    pub fn frames(&self, k: Stack) -> &[Frame] {
        self.nodes.frames(k)
    }

    /// The parameter of the rule that a head with this continuation stands in.
    pub(super) fn param(&self, k: Stack) -> ParamId {
        self.nodes.params[k as usize]
    }

    /// Whether nothing is known of the stack.
    pub fn is_cut_off(&self, k: Stack) -> bool {
        self.frames(k).is_empty()
    }

    /// Whether the stack is cut off at any depth.
    pub fn is_truncated(&self, k: Stack) -> bool {
        self.nodes.truncated[k as usize]
    }

    /// A stack of which nothing is known but the parameter of the rule above it.
    fn cut_off(&mut self, param: ParamId) -> Stack {
        self.intern(param, &[])
    }

    /// The same frames below a rule with another parameter.
    pub(super) fn below(&mut self, param: ParamId, k: Stack) -> Stack {
        if self.param(k) == param {
            return k;
        }
        let frames: Frames = self.frames(k).into();
        self.intern(param, &frames)
    }

    /// How many there are; their numbers are below that.
    pub(super) fn len(&self) -> usize {
        self.nodes.params.len()
    }

    /// Bytes held, roughly.
    pub fn memory(&self) -> usize {
        self.len() * 24 + self.nodes.frames.len() * 16 + (self.unions.len() + self.cut.len()) * 24
    }

    /// Frames that have been merged or interned, the latter counted twice, and unions: a measure of work, of which two
    /// are as much as a step of a budget.
    pub fn work(&self) -> usize {
        self.work + self.nodes.frames.len() * 2
    }

    /// The continuation with these frames, below a rule with this parameter. Frames that return to the same position in
    /// a rule of the same parameter are merged; they are changed in place.
    pub(super) fn of_frames(&mut self, param: ParamId, frames: &mut [Frame]) -> Stack {
        if frames.len() < 2 {
            return self.intern(param, frames);
        }
        self.work += frames.len();
        frames.sort_unstable_by_key(|f| (f.callee, f.back, self.param(f.below), f.below));
        let mut last = 0;
        for at in 1..frames.len() {
            let f = frames[at];
            if self.merges(frames[last], f) {
                frames[last].below = deep(|| self.union(frames[last].below, f.below));
            } else {
                last += 1;
                frames[last] = f;
            }
        }
        self.intern(param, &frames[..=last])
    }

    fn merges(&self, a: Frame, b: Frame) -> bool {
        (a.callee, a.back) == (b.callee, b.back) && self.param(a.below) == self.param(b.below)
    }

    fn intern(&mut self, param: ParamId, frames: &[Frame]) -> Stack {
        let hash = Nodes::hash_of(param, frames);
        let is_same = |&k: &Stack| self.param(k) == param && self.frames(k) == frames;
        if let Some(&known) = self.ids.find(hash, is_same) {
            return known;
        }
        let k = self.push(param, frames);
        let nodes = &self.nodes;
        self.ids.insert_unique(hash, k, |&k| Nodes::hash_of(nodes.params[k as usize], nodes.frames(k)));
        k
    }

    fn push(&mut self, param: ParamId, frames: &[Frame]) -> Stack {
        let below = |f: &Frame| !self.is_bottom(*f) && self.is_truncated(f.below);
        let truncated = frames.is_empty() || frames.iter().any(below);
        let nodes = &mut self.nodes;
        nodes.truncated.push(truncated);
        nodes.params.push(param);
        nodes.frames.extend_from_slice(frames);
        nodes.ends.push(nodes.frames.len() as u32);
        nodes.params.len() as Stack - 1
    }

    /// The stacks of both, which are below a rule of one parameter; cut off if one of them is.
    pub fn union(&mut self, a: Stack, b: Stack) -> Stack {
        debug_assert_eq!(self.param(a), self.param(b));
        if a == b || self.is_cut_off(a) {
            return a;
        }
        if self.is_cut_off(b) {
            return b;
        }
        let key = (a.min(b), a.max(b));
        if let Some(&u) = self.unions.get(&key) {
            return u;
        }
        self.work += UNION;
        let mut all: Frames = self.frames(a).into();
        all.extend_from_slice(self.frames(b));
        let u = self.of_frames(self.param(a), &mut all);
        self.unions.insert(key, u);
        u
    }

    /// The stacks of all of some continuations below a rule of one parameter. There is one at least.
    pub fn union_of(&mut self, mut stacks: impl Iterator<Item = Stack>) -> Stack {
        let first = stacks.next().expect("there is one");
        let Some(second) = stacks.next() else { return first };
        let Some(third) = stacks.next() else { return self.union(first, second) };
        let all: Vec<Stack> = [first, second, third].into_iter().chain(stacks).collect();
        if let Some(&cut_off) = all.iter().find(|&&stack| self.is_cut_off(stack)) {
            return cut_off;
        }
        let mut frames: Frames = all.iter().flat_map(|&stack| self.frames(stack).iter().copied()).collect();
        self.of_frames(self.param(first), &mut frames)
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
        if depth == 0 || self.is_cut_off(k) {
            return (self.cut_off(self.param(k)), UNBOUNDED);
        }
        if let Some(&t) = self.cut.get(&(k, depth, counts)) {
            return t;
        }
        let mut frames: Frames = self.frames(k).into();
        let mut dropped = UNBOUNDED;
        for f in &mut frames {
            if !self.is_bottom(*f) {
                let below = deep(|| self.truncate(f.below, depth - 1, counts, position));
                let back = position(f.back);
                (f.below, f.back) = (below.0, back.0);
                dropped = dropped.min(below.1).min(back.1);
            }
        }
        let t = (self.of_frames(self.param(k), &mut frames), dropped);
        self.cut.insert((k, depth, counts), t);
        t
    }

    /// Whether the frame is the end of the whole text.
    pub fn is_bottom(&self, f: Frame) -> bool {
        f.back == BOTTOM
    }

    /// Copies a continuation of another table into this one; `position` and `param` copy positions and parameters.
    pub(super) fn import(
        &mut self,
        from: &Continuations,
        k: Stack,
        position: &mut dyn FnMut(PosId) -> PosId,
        param: &mut dyn FnMut(ParamId) -> ParamId,
        done: &mut FxHashMap<Stack, Stack>,
    ) -> Stack {
        if let Some(&id) = done.get(&k) {
            return id;
        }
        let mut frames: Frames = from.frames(k).into();
        for f in &mut frames {
            f.below = deep(|| self.import(from, f.below, position, param, done));
            f.back = position(f.back);
        }
        let id = self.of_frames(param(from.param(k)), &mut frames);
        done.insert(k, id);
        id
    }
}
