//! Threads: the heads of a kernel, split so that a text can be followed without interning new expressions.
//!
//! A residual `x t` (a part of a terminal, then the rest up to its tag, which says where in the rules the terminal
//! stands) is followed by deriving `x` alone. Its derivatives are shared by all positions where such a part stands;
//! those of the whole would differ in the tag. The operands of a union are followed one by one: threads are the
//! partial derivatives of Antimirov (1996), where a derivative of Brzozowski would be their union. Where a token
//! ends, threads are joined again to the heads of a kernel.

use smallvec::SmallVec;

use super::continuation::{Stack, UNSURE};
use super::step::{Head, Heads, Machine};
use crate::budget::Budget;
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::recursion::deep;
use crate::regular::{EMPTY, EPS, Form, Id, List};

/// The residual `part tail` over a continuation; `tail` is `EPS` where the residual is not split.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(super) struct Thread {
    part: Id,
    tail: Id,
    stack: Stack,
}

impl Thread {
    /// Whether it stands for anything that may follow where a truncated stack was popped.
    pub(super) fn is_anything(self) -> bool {
        Head { rest: self.part, stack: self.stack }.is_anything()
    }

    /// Whether it depends on more of a truncated stack if it is one of the threads.
    pub(super) fn is_unsure(self) -> bool {
        self.stack == UNSURE
    }
}

pub(super) type Threads = SmallVec<[Thread; 2]>;

/// More threads than this are joined and followed as whole residuals: a text would have to be followed on each.
const MOST: usize = 16;

impl Machine {
    /// The threads of a kernel or closure, in normal form.
    pub(super) fn threads(&mut self, heads: &[Head], budget: &mut Budget) -> Result<Threads> {
        let mut out = Threads::new();
        for h in heads {
            self.split(h.rest, h.stack, &mut out, budget)?;
        }
        self.settle(&mut out, budget)?;
        Ok(out)
    }

    /// The kernel that threads were split from.
    pub(super) fn join(&mut self, threads: &[Thread], budget: &mut Budget) -> Result<Heads> {
        let whole = |t: &Thread| Ok(Head { rest: self.arena.concat_within(t.part, t.tail, budget)?, stack: t.stack });
        let mut heads: Heads = threads.iter().map(whole).collect::<Result<_>>()?;
        self.normalise(&mut heads, budget)?;
        Ok(heads)
    }

    /// Adds the thread of a residual, unless nothing can complete it.
    fn split(&mut self, mut rest: Id, stack: Stack, out: &mut Threads, budget: &mut Budget) -> Result<()> {
        if self.careful && stack != UNSURE {
            let (living, unsure) = self.living(Head { rest, stack }, budget)?;
            if unsure != EMPTY {
                self.split(unsure, UNSURE, out, budget)?;
            }
            rest = living;
        }
        if self.arena.alive(rest, budget)? {
            let (part, tail) = if let Form::Then(x, t) = self.arena.form(rest) { (x, t) } else { (rest, EPS) };
            add(out, Thread { part, tail, stack });
        }
        Ok(())
    }

    /// The alternatives of a head that have an ending, and those of which that depends on more of a truncated stack.
    fn living(&mut self, head: Head, budget: &mut Budget) -> Result<(Id, Id)> {
        let all = self.arena.alternatives(head.rest);
        let (mut living, mut unsure) = (List::new(), List::new());
        for &rest in &all {
            if self.arena.alive(rest, budget)? {
                match self.lives(Head { rest, ..head }, budget)? {
                    Some(true) => living.push(rest),
                    Some(false) => {}
                    None => unsure.push(rest),
                }
            }
        }
        if living.len() == all.len() {
            return Ok((head.rest, EMPTY));
        }
        Ok((self.arena.alt_within(&living, budget)?, self.arena.alt_within(&unsure, budget)?))
    }

    /// Brings threads into normal form: sorted, and joined where they are too many.
    pub(super) fn settle(&mut self, threads: &mut Threads, budget: &mut Budget) -> Result<()> {
        if threads.len() > MOST {
            let whole = |h: &Head| Thread { part: h.rest, tail: EPS, stack: h.stack };
            *threads = self.join(threads, budget)?.iter().map(whole).collect();
        }
        threads.sort_unstable();
        Ok(())
    }

    /// The part of a thread that holds the tags which can be reached without another byte; `EPS` if there are none.
    pub(super) fn ending_of(&self, t: Thread) -> Head {
        if t.is_anything() {
            return Head { rest: EPS, stack: t.stack };
        }
        let rest = match (self.arena.nullable(t.part), t.tail) {
            (true, EPS) => t.part,
            (true, tail) if self.arena.nullable(tail) => tail,
            _ => EPS,
        };
        Head { rest, stack: t.stack }
    }

    /// Whether nothing is left of a thread's terminal.
    pub(super) fn is_tag(&self, t: Thread) -> bool {
        t.tail == EPS && self.arena.is_end(t.part)
    }

    /// If a thread is split: its part, and the bytes that can come next from what follows the part.
    pub(super) fn apart(&mut self, t: Thread, budget: &mut Budget) -> Result<Option<(Id, ByteSet)>> {
        if t.tail == EPS {
            return Ok(None);
        }
        let nullable = self.arena.nullable(t.part);
        let after = if nullable { self.first_of_rest(t.tail, budget)? } else { ByteSet::NONE };
        Ok(Some((t.part, after)))
    }

    /// The bytes that lead on from a thread.
    pub(super) fn first_of(&mut self, t: Thread, budget: &mut Budget) -> Result<ByteSet> {
        if t.tail == EPS {
            return self.first_of_rest(t.part, budget);
        }
        let first = self.arena.first(t.part, budget)?;
        if self.arena.nullable(t.part) { Ok(first.or(self.first_of_rest(t.tail, budget)?)) } else { Ok(first) }
    }

    fn first_of_rest(&mut self, rest: Id, budget: &mut Budget) -> Result<ByteSet> {
        if !self.arena.alive(rest, budget)? {
            return Ok(ByteSet::NONE);
        }
        match self.arena.form(rest) {
            Form::Byte(set, _) => Ok(set),
            Form::Then(part, tail) => self.first_of(Thread { part, tail, stack: 0 }, budget),
            Form::Union(n) => {
                let mut first = ByteSet::NONE;
                for i in 0..n {
                    let operand = self.arena.operand(rest, i);
                    first = first.or(deep(|| self.first_of_rest(operand, budget))?);
                }
                Ok(first)
            }
            Form::Whole => self.arena.first(rest, budget),
        }
    }

    /// Adds the threads that one byte of a thread leads to. Returns a set of bytes, this one among them, that lead to
    /// the same.
    pub(super) fn follow(&mut self, t: Thread, byte: u8, out: &mut Threads, budget: &mut Budget) -> Result<ByteSet> {
        if !self.counts_columns {
            return self.follow_text(t, byte, out, budget);
        }
        let stack = self.after_bytes(t.stack, &[byte]);
        let mut after = Threads::new();
        let same = self.follow_text(Thread { stack, ..t }, byte, &mut after, budget)?;
        for next in after {
            let rest = if next.tail == EPS { next.part } else { next.tail };
            add(out, Thread { stack: self.forget_column(next.stack, rest), ..next });
        }
        let blanks = [b' ', b'\t', b'\n'].map(ByteSet::only);
        let counted = blanks.iter().find(|blank| blank.contains(byte));
        Ok(counted.map_or_else(|| blanks.iter().fold(same, |all, &blank| all.minus(blank)), |&blank| same.and(blank)))
    }

    fn follow_text(&mut self, t: Thread, byte: u8, out: &mut Threads, budget: &mut Budget) -> Result<ByteSet> {
        if t.tail == EPS {
            return self.follow_rest(t.part, t.stack, byte, out, budget);
        }
        let (mut same, part) = self.derivative(t.part, byte, budget)?;
        match part {
            EMPTY => {}
            _ if self.arena.is_sequence(part) => {
                // split anew, so that the same residual is always the same thread
                let rest = self.arena.concat_within(part, t.tail, budget)?;
                self.split(rest, t.stack, out, budget)?;
            }
            _ => add(out, Thread { part, ..t }),
        }
        if self.arena.nullable(t.part) {
            budget.spend(1)?; // a thousand optional parts are passed one by one
            same = same.and(self.follow_rest(t.tail, t.stack, byte, out, budget)?);
        }
        Ok(same)
    }

    fn follow_rest(
        &mut self,
        rest: Id,
        stack: Stack,
        byte: u8,
        out: &mut Threads,
        budget: &mut Budget,
    ) -> Result<ByteSet> {
        if !self.arena.alive(rest, budget)? {
            return Ok(ByteSet::ALL);
        }
        match self.arena.form(rest) {
            Form::Byte(set, after) if set.contains(byte) => {
                self.split(after, stack, out, budget)?;
                Ok(set)
            }
            Form::Byte(set, _) => Ok(ByteSet::ALL.minus(set)),
            Form::Then(part, tail) => self.follow_text(Thread { part, tail, stack }, byte, out, budget),
            Form::Union(n) => {
                let mut same = ByteSet::ALL;
                for i in 0..n {
                    let operand = self.arena.operand(rest, i);
                    same = same.and(deep(|| self.follow_rest(operand, stack, byte, out, budget))?);
                }
                Ok(same)
            }
            Form::Whole => {
                let (same, after) = self.derivative(rest, byte, budget)?;
                self.split(after, stack, out, budget)?;
                Ok(same)
            }
        }
    }

    fn derivative(&mut self, x: Id, byte: u8, budget: &mut Budget) -> Result<(ByteSet, Id)> {
        let first = self.arena.first(x, budget)?;
        if first.contains(byte) { self.arena.edge(x, byte, budget) } else { Ok((ByteSet::ALL.minus(first), EMPTY)) }
    }
}

fn add(threads: &mut Threads, t: Thread) {
    if !threads.contains(&t) {
        threads.push(t);
    }
}
