//! What an indenter counts: the blanks since the last line end in the token at hand, its *column*.
//!
//! The parameter of a stack has it, so that the continuation of a head in such a token depends on each byte of it.

use super::continuation::{Stack, UNSURE};
use super::position::Pos;
use super::step::{Head, Machine};
use crate::ir::{Indenter, Layout, Parser};
use crate::regular::Id;

/// How blanks are counted within a token that can end a line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Column {
    /// The blanks since the last line end, if there was one.
    pub column: Option<u32>,
    /// What a tab counts.
    tab: u32,
}

impl Column {
    /// Before the first line end.
    pub fn uncounted(self) -> Column {
        Column { column: None, ..self }
    }

    /// After one more byte.
    pub fn after(self, byte: u8) -> Column {
        let column = match (byte, self.column) {
            (b'\n', _) => Some(0),
            (b' ', Some(column)) => Some((column + 1).min(Layout::WIDEST)),
            (b'\t', Some(column)) => Some((column + self.tab).min(Layout::WIDEST)),
            (_, column) => column,
        };
        Column { column, ..self }
    }
}

impl Machine {
    /// The continuation after more bytes of a token: what an indenter counts.
    pub(super) fn after_bytes(&mut self, stack: Stack, bytes: &[u8]) -> Stack {
        if stack == UNSURE {
            return stack;
        }
        let Some(tab) = self.indenter_of(stack).map(|indenter| indenter.tab) else { return stack };
        let mut layout = self.instances.layout(self.stacks.param(stack));
        let after = bytes.iter().fold(Column { column: layout.column, tab }, |at, &byte| at.after(byte)).column;
        if after == layout.column {
            return stack;
        }
        layout.column = after;
        let param = self.instances.of_layout(&layout);
        self.stacks.below(param, stack)
    }

    /// The continuation without what an indenter has counted, unless a residual can still end a line.
    pub(super) fn forget_column(&mut self, stack: Stack, rest: Id) -> Stack {
        let mut layout = self.instances.layout(self.stacks.param(stack));
        if layout.column.take().is_none() || self.ends_lines(rest) {
            return stack;
        }
        let param = self.instances.of_layout(&layout);
        self.stacks.below(param, stack)
    }

    /// Whether the continuation of a head depends on each byte of its lexeme.
    pub fn counts_byte_by_byte(&mut self, head: Head) -> bool {
        self.counts_columns && self.ends_lines(head.rest)
    }

    /// Whether a residual can still end in a token that ends a line.
    pub(super) fn ends_lines(&mut self, rest: Id) -> bool {
        if let Some(&known) = self.parsers.ends_lines.get(&rest) {
            return known;
        }
        let (ir, positions) = (&self.ir, &self.positions);
        let other = |p| match positions.get(p) {
            Pos::Token { rule, terminal, .. } => {
                ir.parser(rule).and_then(Parser::indenter).is_none_or(|indenter| indenter.newline != terminal)
            }
            _ => true,
        };
        let found = !self.arena.every_tag(rest, &mut { other });
        self.parsers.ends_lines.insert(rest, found);
        found
    }

    /// The indenter of the parser whose stack this is.
    fn indenter_of(&self, stack: Stack) -> Option<&Indenter> {
        match self.positions.get(self.stacks.frames(stack).first()?.back) {
            Pos::State { rule, .. } => self.ir.parser(rule)?.indenter(),
            _ => None,
        }
    }

    /// If the column decides what follows the token that a head stands in: the column there.
    pub fn column(&mut self, head: Head) -> Option<Column> {
        if !self.counts_byte_by_byte(head) {
            return None;
        }
        let layout = self.instances.layout(self.stacks.param(head.stack));
        // within brackets, line ends are blanks
        (layout.depth == 0).then(|| Column { column: layout.column, tab: self.tab_of(head.rest) })
    }

    /// The continuation with another column.
    pub fn at_column(&mut self, stack: Stack, at: Column) -> Stack {
        if stack == UNSURE {
            return stack;
        }
        let mut layout = self.instances.layout(self.stacks.param(stack));
        layout.column = at.column;
        let param = self.instances.of_layout(&layout);
        self.stacks.below(param, stack)
    }

    /// Columns at which different tokens can follow a line end, but for those at which none can: that of each open block,
    /// and a wider one.
    pub fn columns_apart(&self, stack: Stack, like: Column) -> Vec<Column> {
        let layout = self.instances.layout(self.stacks.param(stack));
        let widths = layout.indents.iter().copied().chain([0, layout.indent() + 1]);
        widths.map(|width| Column { column: Some(width), ..like }).collect()
    }

    /// Whether any column leads to an ending, as lines go on.
    pub fn lines_end_freely(&self) -> bool {
        !self.careful || self.searches.free.is_any()
    }

    /// What a tab counts in the tokens that end lines of a residual.
    fn tab_of(&self, rest: Id) -> u32 {
        let mut tab = 0;
        self.arena.every_tag(rest, &mut |p| {
            if let Pos::Token { rule, terminal, .. } = self.positions.get(p)
                && let Some(indenter) = self.ir.parser(rule).and_then(Parser::indenter)
                && indenter.newline == terminal
            {
                tab = indenter.tab;
            }
            tab == 0
        });
        tab
    }
}
