//! Whether lexemes combine freely: whether any can follow any other, with ignored text between them if need be.
//!
//! Where they do, whatever rules and tables allow has an ending, and need not be searched for one (`search.rs`). What
//! can keep them apart are the conditions that a lexeme leaves to the text behind it: no letter behind a name, say,
//! which a blank meets before the next name.

use rustc_hash::FxHashSet;

use super::position::BOTTOM;
use super::step::Machine;
use crate::budget::Budget;
use crate::error::Result;
use crate::ir::{Node, NodeId, Parser, RuleId};
use crate::regular::{Arena, EMPTY, Id, TOP};

/// Tables of more states than this are not followed with care only because they starve a rule.
const MOST_STATES: u32 = 128;

/// Conditions on what follows a lexeme, as far as it is worthwhile to look at all of them.
const MOST_CONDITIONS: usize = 64;

/// When heads are searched for an ending.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Care {
    Never,
    /// Where lexemes do not end under one of these conditions.
    Behind(FxHashSet<Id>),
    Always,
}

impl Machine {
    /// Whether any lexeme can follow any other, with ignored text between them if need be: then what the rules and
    /// tables allow has an ending, and need not be searched for one. If some cannot: the conditions under which any can,
    /// where each lexeme can end under one of these.
    pub(super) fn care(&mut self, budget: &mut Budget) -> Result<Care> {
        let ir = self.ir.clone();
        let (mut lexemes, mut skipped, mut tokens) = (Vec::new(), Vec::new(), FxHashSet::default());
        let mut todo: Vec<NodeId> = ir.rules.clone();
        let mut met: FxHashSet<NodeId> = FxHashSet::default();
        while let Some(node) = todo.pop() {
            if !met.insert(node) {
                continue;
            }
            match &ir.nodes[node as usize] {
                Node::Text(os) => skipped.extend(os[1..].iter().copied()),
                Node::Parser(parser) => {
                    let starves = parser.starves && parser.states() <= MOST_STATES;
                    let rule = ir.rules.iter().position(|&body| body == node).expect("it is a rule's body") as RuleId;
                    if starves || !self.completes_all(rule, parser, budget)? || !self.lines_go_on(parser, budget)? {
                        return Ok(Care::Always);
                    }
                    for (terminal, text) in parser.all_lexemes() {
                        if parser.is_ignored(terminal) {
                            skipped.push(text);
                        } else {
                            tokens.insert(text);
                        }
                    }
                }
                _ => {}
            }
            if ir.is_unit(node) {
                lexemes.push(node);
            } else {
                ir.nodes[node as usize].operands(|o| todo.push(o));
            }
        }
        let any = self.whole_lexemes(&lexemes, budget)?;
        let blanks = self.whole_lexemes(&skipped, budget)?;
        // what is skipped alone need not be able to follow
        lexemes.retain(|node| tokens.contains(node) || !skipped.contains(node));
        let needed = self.whole_lexemes(&lexemes, budget)?;
        let mut conditions = vec![TOP];
        let mut at = 0;
        // the conditions under which a lexeme can begin
        while let Some(&condition) = conditions.get(at) {
            at += 1;
            if conditions.len() > MOST_CONDITIONS {
                break; // to find all of them would take too long: those that are found stand for the others
            }
            if condition != TOP && self.arena.is_brief(condition) {
                continue; // it is met or not by the first byte, so that other lexemes end as they do elsewhere
            }
            for &lexeme in &any {
                let x = self.arena.under(condition, lexeme);
                for left in self.conditions_behind(x, budget)? {
                    if !conditions.contains(&left) {
                        conditions.push(left);
                    }
                }
            }
        }
        let mut free: Vec<Id> = Vec::new();
        for &condition in &conditions {
            if self.all_begin(condition, &needed, budget)? {
                free.push(condition);
            }
        }
        let (mut open, mut tight) = (FxHashSet::default(), false);
        for condition in conditions {
            let mut escapes = free.contains(&condition) && self.arena.nullable(condition);
            for &blank in &blanks {
                if escapes {
                    break;
                }
                let x = self.arena.under(condition, blank);
                for way in self.ways(x, budget)?.iter() {
                    let (left, _) = self.arena.under_condition(way.1);
                    escapes |= free.contains(&left) && self.arena.nullable(left);
                }
            }
            if escapes {
                open.insert(self.arena.unit(condition));
            }
            tight |= !escapes;
        }
        if !tight {
            return Ok(Care::Never);
        }
        for &lexeme in &needed {
            let mut some = false;
            for way in self.ways(lexeme, budget)?.iter() {
                some |= open.contains(&self.arena.under_condition(way.1).0);
            }
            if !some {
                return Ok(Care::Always);
            }
        }
        Ok(Care::Behind(open))
    }

    /// The conditions under which lexemes can end. Of a lexeme under a condition, only those that it has while that
    /// condition is not met yet: the others are those of the lexeme itself.
    fn conditions_behind(&mut self, x: Id, budget: &mut Budget) -> Result<Vec<Id>> {
        let mut found = Vec::new();
        let mut add = |arena: &mut Arena, x: Id| {
            let new = arena.ends(x).into_iter().map(|end| end.0);
            found.extend(new.filter(|condition| *condition != EMPTY));
        };
        if self.arena.under_condition(x).0 == TOP {
            let tail = self.arena.open_tail(x);
            if self.arena.first(tail, budget)?.is_empty() {
                add(&mut self.arena, tail);
            } else {
                let ways = self.ways(x, budget)?;
                found.extend(ways.iter().map(|way| self.arena.under_condition(way.1).0));
            }
            return Ok(found);
        }
        let mut met: FxHashSet<Id> = FxHashSet::from_iter([x]);
        let mut todo = vec![x];
        while let Some(at) = todo.pop() {
            budget.spend(8)?;
            add(&mut self.arena, at);
            for (_, next) in self.arena.successors(at, budget)? {
                for branch in self.arena.branches(next) {
                    if self.arena.under_condition(branch).0 != TOP && met.insert(branch) {
                        todo.push(branch);
                    }
                }
            }
        }
        Ok(found)
    }

    /// Whether each state of a parser can complete something that it may have begun, by terminals that the lexer of the
    /// states on the way can read.
    fn completes_all(&mut self, rule: RuleId, parser: &Parser, budget: &mut Budget) -> Result<bool> {
        let mut read: Vec<FxHashSet<u32>> = Vec::new();
        for mode in 0..parser.modes() {
            let mut terminals = FxHashSet::default();
            for &(terminal, text) in parser.lexemes_of(mode) {
                let x = self.whole_lexeme(text, budget)?;
                if self.arena.alive(x, budget)? {
                    terminals.insert(terminal);
                }
            }
            if let Some(indenter) = parser.indenter() {
                terminals.extend([indenter.indent, indenter.dedent]);
            }
            read.push(terminals);
        }
        let is_read = |state, terminal| read[parser.mode(state) as usize].contains(&terminal);
        if (0..parser.states()).all(|state| parser.expected(state).all(|terminal| is_read(state, terminal))) {
            return Ok(true);
        }
        let lengths = self.symbol_lengths(rule, parser, budget)?;
        // the state after a symbol, where it can be read
        let passes = |state, symbol| {
            let next = parser.next(state, symbol)?;
            let derived = parser.goto(state, symbol).is_some();
            (if derived { lengths.contains_key(&symbol) } else { is_read(state, symbol) }).then_some(next)
        };
        let mut completes = vec![false; parser.states() as usize];
        for state in 0..parser.states() {
            let derived: FxHashSet<u32> = parser.derived_in(state).collect();
            for (symbol, parts) in parser.rules() {
                budget.spend(1)?;
                if !derived.contains(symbol) {
                    continue;
                }
                let path: Vec<u32> = parts
                    .iter()
                    .scan(state, |at, &part| {
                        *at = passes(*at, part)?;
                        Some(*at)
                    })
                    .collect();
                if path.len() == parts.len() {
                    path.into_iter().for_each(|at| completes[at as usize] = true);
                }
            }
        }
        let mut met: FxHashSet<u32> = FxHashSet::from_iter([parser.start]);
        let mut todo = vec![parser.start];
        while let Some(state) = todo.pop() {
            if !completes[state as usize] && state != parser.start && !parser.is_end(state) {
                return Ok(false);
            }
            let symbols = parser.expected(state).chain(parser.derived_in(state));
            todo.extend(symbols.filter_map(|symbol| passes(state, symbol)).filter(|&next| met.insert(next)));
        }
        Ok(true)
    }

    /// Whether what ends a line can go on with another line end and blanks, so that a line of a width that fits no block
    /// is none that the text has to keep.
    fn lines_go_on(&mut self, parser: &Parser, budget: &mut Budget) -> Result<bool> {
        let Some(indenter) = parser.indenter() else { return Ok(true) };
        let lexemes: FxHashSet<NodeId> =
            parser.all_lexemes().filter(|lexeme| lexeme.0 == indenter.newline).map(|lexeme| lexeme.1).collect();
        for node in lexemes {
            let x = self.whole_lexeme(node, budget)?;
            for (text, ..) in self.ways(x, budget)?.iter() {
                let mut at = x;
                for &byte in text.iter().chain(b"\n") {
                    at = self.arena.next(at, byte, budget)?;
                }
                let wider = self.arena.next(at, b' ', budget)?;
                if wider == EMPTY || self.arena.next(wider, b' ', budget)? != wider {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether each of some lexemes can follow under a condition.
    fn all_begin(&mut self, condition: Id, lexemes: &[Id], budget: &mut Budget) -> Result<bool> {
        for &lexeme in lexemes {
            let x = self.arena.under(condition, lexeme);
            if !self.arena.alive(x, budget)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Lexemes with a tag that means nothing; those that take no text are left out.
    fn whole_lexemes(&mut self, nodes: &[NodeId], budget: &mut Budget) -> Result<Vec<Id>> {
        let (mut found, mut met) = (Vec::new(), FxHashSet::default());
        for &node in nodes {
            let x = self.whole_lexeme(node, budget)?;
            if self.arena.alive(x, budget)? && met.insert(x) {
                found.push(x);
            }
        }
        Ok(found)
    }

    pub(super) fn whole_lexeme(&mut self, node: NodeId, budget: &mut Budget) -> Result<Id> {
        let ir = self.ir.clone();
        let mut x = self.arena.lower(&ir, node, &mut self.lowered, budget)?;
        if !matches!(ir.nodes[node as usize], Node::Lexeme(_)) {
            x = self.arena.unit(x);
        }
        let end = self.accept(BOTTOM);
        let x = self.arena.concat_within(x, end, budget)?;
        Ok(self.arena.lexeme(x))
    }
}
