//! Steps of lexemes that can end a line where an indenter counts blanks: each end has its column.
//!
//! The blanks behind a line end are followed one by one, and there is an end for each column that tokens lead to. In
//! runs, such as the inside of a comment, they are not counted: an end behind one is *lost*, and tokens are followed byte
//! by byte where something can follow it. Where all ends are behind another line end, as in a comment, the step is the
//! same for each column that it begins at.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::steps::{End, Step};
use super::texts::{Found, Place};
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::mask::cache::Branch;
use crate::mask::maker::MaskMaker;
use crate::mask::row::Draft;
use crate::recursion::deep;
use crate::regular::{EMPTY, Id};
use crate::stack::{Column, Head};
use crate::vocabulary::{NodeIndex, Trie};

/// A column, as far as it was counted.
#[derive(Clone, Copy)]
struct Counted {
    column: Column,
    /// Whether some blanks since the last line end were not counted.
    is_lost: bool,
    /// Whether the column at the beginning is part of it: there was no line end yet.
    from_start: bool,
}

impl Counted {
    fn after(self, byte: u8) -> Counted {
        let same_line = byte != b'\n';
        Counted {
            column: self.column.after(byte),
            is_lost: self.is_lost && same_line,
            from_start: self.from_start && same_line,
        }
    }

    /// Behind characters that were not looked at, none of which ends a line.
    fn after_run(self) -> Counted {
        Counted { is_lost: self.is_lost || self.column.column.is_some(), ..self }
    }
}

/// A step that is being computed.
struct Lines<'a> {
    trie: &'a Trie,
    /// Nodes to be walked, each with the residual there, the bytes to follow and the column.
    todo: Vec<(NodeIndex, Id, ByteSet, Counted)>,
    reached: Vec<u32>,
    /// For each end, the nodes of the bytes after it.
    ends: FxHashMap<((Id, u32), Column), Found>,
    /// The same for ends whose column was not counted.
    lost: FxHashMap<(Id, u32), Found>,
    /// Whether some end has a column that depends on the one at the beginning.
    from_start: bool,
}

impl Lines<'_> {
    /// Notes nodes that are entered by the bytes behind an end.
    fn end(&mut self, end: (Id, u32), at: Counted, nodes: impl Iterator<Item = NodeIndex>) {
        let mut nodes = nodes.peekable();
        if nodes.peek().is_none() {
            return;
        }
        if at.is_lost {
            self.lost.entry(end).or_default().extend(nodes);
        } else {
            self.from_start |= at.from_start;
            self.ends.entry((end, at.column)).or_default().extend(nodes);
        }
    }
}

impl MaskMaker<'_> {
    /// The step of a residual that can end a line on a trie, given the column.
    pub(super) fn line_step(&mut self, place: Place, rest: Id, column: Column) -> Result<Arc<Step>> {
        let steps = &self.local.steps;
        let known = steps.lines.get(&(place, rest, None)).or_else(|| steps.lines.get(&(place, rest, Some(column))));
        if let Some(known) = known {
            return Ok(known.clone());
        }
        let step = Arc::new(self.take_lines(place, &self.trie(place), rest, column)?);
        self.local.steps.hold(&step);
        self.local.steps.lines.insert((place, rest, step.column), step.clone());
        Ok(step)
    }

    fn take_lines(&mut self, place: Place, trie: &Trie, rest: Id, column: Column) -> Result<Step> {
        let mut lines = Lines {
            trie,
            todo: Vec::new(),
            reached: Vec::new(),
            ends: FxHashMap::default(),
            lost: FxHashMap::default(),
            from_start: false,
        };
        let counted = Counted { column, is_lost: false, from_start: true };
        match self.nodes(place).list() {
            None => lines.todo.push((0, rest, ByteSet::ALL, counted)),
            Some(nodes) => {
                let first = self.machine.arena.first(rest, self.budget)?;
                for &node in nodes.iter().filter(|&&node| first.contains(trie.byte(node))) {
                    let byte = trie.byte(node);
                    let next = self.machine.arena.next(rest, byte, self.budget)?;
                    self.enter_line(node, next, counted.after(byte), &mut lines)?;
                }
            }
        }
        while let Some((node, state, bytes, counted)) = lines.todo.pop() {
            let first = self.machine.arena.first(state, self.budget)?.and(bytes);
            for (byte, child) in trie.children(node, first) {
                self.budget.spend(1)?;
                let next = self.machine.arena.next(state, byte, self.budget)?;
                self.enter_line(child, next, counted.after(byte), &mut lines)?;
            }
        }
        let mut step = Step { column: lines.from_start.then_some(column), ..Step::default() };
        let reached = Draft { set: lines.reached, ..Draft::default() };
        step.reached.push((rest, Arc::new(reached.with_base_if_many(self.vocab.words()))));
        for ((end, column), nodes) in lines.ends {
            let rests = self.rests_from((place, trie), nodes);
            step.ends.push(End { end, column: Some(column), rests, except: Arc::default() });
        }
        for (end, nodes) in lines.lost {
            let rests = self.rests_from((place, trie), nodes);
            step.lost.push(End { end, column: None, rests, except: Arc::default() });
        }
        Ok(step)
    }

    /// Whether something can follow one of the lost ends of a head's step, at any column.
    pub(super) fn goes_on_lost(&mut self, head: Head, column: Column, step: &Step) -> Result<bool> {
        for End { end, rests, .. } in &step.lost {
            for at in self.machine.columns_apart(head.stack, column) {
                self.budget.spend(1)?; // a text may have thousands of open blocks
                let stack = self.machine.at_column(head.stack, at);
                let after = self.after(Head { stack, ..head }, *end)?;
                if rests.may_begin(after.first) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Continues a walk at a node at which the residual is `state`.
    fn enter_line(&mut self, node: NodeIndex, state: Id, counted: Counted, lines: &mut Lines) -> Result<()> {
        let trie = lines.trie;
        lines.reached.extend_from_slice(trie.tokens_at(node));
        if trie.is_leaf(node) {
            return Ok(());
        }
        let ends = self.ends_of(state)?;
        let mut after = ByteSet::NONE;
        for &end in ends.iter() {
            let first = self.first_behind(end.0)?;
            after = after.or(first);
            lines.end(end, counted, trie.children(node, first).map(|(_, child)| child));
        }
        if let Some((_, tokens)) = trie.below(node)
            && let Some(plain) = self.self_loop(state)?
            && !plain.contains(b'\n')
            && after.and(plain).is_empty()
        {
            let branch = match trie.name {
                Some(name) => self.shared.branch((name, trie), node, plain),
                None => {
                    self.budget.spend(tokens.len() as u64)?;
                    Arc::new(Branch::new(trie, node, plain))
                }
            };
            lines.reached.extend_from_slice(&branch.plain);
            lines.todo.push((node, state, ByteSet::ALL.minus(plain), counted));
            for (byte, nodes) in branch.exits() {
                for &end in ends.iter() {
                    if self.first_behind(end.0)?.contains(byte) {
                        lines.end(end, counted.after_run(), nodes.iter().copied());
                    }
                }
            }
            return self.leave_comment(&branch, state, counted.after_run(), lines);
        }
        lines.todo.push((node, state, ByteSet::ALL, counted));
        Ok(())
    }

    /// Continues behind the runs of a branch.
    fn leave_comment(&mut self, branch: &Branch, state: Id, counted: Counted, lines: &mut Lines) -> Result<()> {
        for (byte, nodes) in branch.exits() {
            let next = self.machine.arena.next(state, byte, self.budget)?;
            if next != EMPTY {
                self.budget.spend(nodes.len() as u64)?;
                for &node in nodes {
                    deep(|| self.enter_line(node, next, counted.after(byte), lines))?;
                }
            }
        }
        Ok(())
    }
}
