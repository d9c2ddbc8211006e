//! Whether lexemes combine freely: whether any can follow any other, with ignored text between them if need be.
//!
//! Where they do, whatever the rules and the tables of parsers allow has an ending, and need not be searched for one
//! (`search.rs`). What can keep two lexemes apart is a condition on the text after the first: no letter after a name,
//! say, which a blank before the next name satisfies. Where such conditions keep lexemes apart, heads are searched for
//! an ending: if each lexeme can also end under another condition, only those that do not; else all. Where a parser may
//! begin what it cannot complete (`completing.rs`), those are searched, too, whose stack it may not complete.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::completing::{Completes, Completing};
use super::numbers::Numbers;
use super::position::BOTTOM;
use super::step::Machine;
use crate::budget::Budget;
use crate::error::Result;
use crate::ir::{Lexeme, Node, NodeId, Parser, Placed, RuleId};
use crate::regular::{Arena, EMPTY, Id, TOP};

/// Conditions on what follows a lexeme, as far as it is worthwhile to look at all of them.
const MOST_CONDITIONS: usize = 64;

/// The lexemes that may stand behind a character of one class, each with the class of its last character.
#[derive(Default)]
struct Readable {
    all: BTreeSet<(Id, u32)>,
    /// Those that are passed over: a set for each mode of a lexer, since a terminal of one may take all texts of another.
    blanks: BTreeSet<BTreeSet<(Id, u32)>>,
    /// Those that have to be able to follow whatever stands before.
    needed: BTreeSet<(Id, u32)>,
    /// Whether each terminal that has lexemes behind characters of other classes has some behind these.
    is_whole: bool,
}

/// When heads are searched for an ending.
pub(super) enum Care {
    Never,
    /// Where it does not follow from this that they have one.
    But(Free),
    Always,
}

/// Which ends of lexemes are known to have an ending.
#[derive(Default)]
pub(super) struct Free {
    /// Conditions under which any lexeme can follow.
    pub(super) conditions: FxHashSet<Id>,
    /// Whether all are such conditions.
    pub(super) all: bool,
    /// Of the parsers that may begin what they cannot complete: what they surely complete.
    pub(super) completing: FxHashMap<RuleId, Arc<Completing>>,
}

impl Free {
    pub(super) fn holds(&self, condition: Id) -> bool {
        self.all || self.conditions.contains(&condition)
    }

    /// Whether there is any such end.
    pub(super) fn is_any(&self) -> bool {
        self.all || !self.conditions.is_empty()
    }
}

impl Machine {
    /// Whether any lexeme can follow any other, with ignored text between them if need be: then what the rules and
    /// tables allow has an ending, and need not be searched for one. If some cannot: the conditions under which any can,
    /// where each lexeme can end under one of these.
    pub(super) fn care(&mut self, budget: &mut Budget) -> Result<Care> {
        let ir = self.ir.clone();
        let numbered = (0..ir.rules.len() as RuleId).filter_map(|rule| Some((rule, ir.parser(rule)?)));
        let (rules, parsers): (Vec<RuleId>, Vec<&Parser>) = numbered.unzip();
        let mut completing: FxHashMap<RuleId, Arc<Completing>> = FxHashMap::default();
        for (&rule, &parser) in rules.iter().zip(&parsers) {
            if !self.lines_go_on(parser, budget)? {
                return Ok(Care::Always);
            }
            match self.completes_surely(parser, budget)? {
                Completes::All => {}
                Completes::Only(only) if !self.counts_columns => {
                    completing.insert(rule, Arc::new(only));
                }
                _ => return Ok(Care::Always),
            }
        }
        let Some(readable) = self.readable(&parsers, budget)? else { return Ok(Care::Always) };
        let conditions = self.conditions(&readable, budget)?;
        let mut free: FxHashSet<(u32, Id)> = FxHashSet::default();
        for &(class, condition) in &conditions {
            let next = &readable[class as usize];
            if next.is_whole && self.all_begin(condition, &next.needed, budget)? {
                free.insert((class, condition));
            }
        }
        let (mut open, mut closed): (FxHashSet<Id>, FxHashSet<Id>) = Default::default();
        let knows_class = |class: u32| if parsers.is_empty() { class } else { 0 };
        for (class, condition) in conditions {
            let next = &readable[class as usize];
            let escapes = free.contains(&(class, condition)) && self.arena.nullable(condition)
                || self.escapes_by_blanks(condition, &next.blanks, &free, budget)?;
            let ways = if escapes { &mut open } else { &mut closed };
            ways.insert(self.arena.past_and(knows_class(class), condition));
        }
        if closed.is_empty() && completing.is_empty() {
            return Ok(Care::Never);
        }
        if closed.is_empty() {
            return Ok(Care::But(Free { all: true, completing, ..Free::default() }));
        }
        open.retain(|condition| !closed.contains(condition));
        for &(lexeme, last) in readable.iter().flat_map(|next| &next.needed) {
            let mut some = false;
            for way in self.ways(lexeme, budget)?.iter() {
                let (left, _) = self.arena.under_condition(way.1);
                some |= open.contains(&self.arena.past_and(knows_class(last), left));
            }
            if !some {
                return Ok(Care::Always);
            }
        }
        Ok(Care::But(Free { conditions: open, all: false, completing }))
    }

    /// Whether each mode of a lexer reads a blank under a condition behind which any lexeme can follow.
    fn escapes_by_blanks(
        &mut self,
        condition: Id,
        blanks: &BTreeSet<BTreeSet<(Id, u32)>>,
        free: &FxHashSet<(u32, Id)>,
        budget: &mut Budget,
    ) -> Result<bool> {
        let mut escaping: FxHashSet<(Id, u32)> = FxHashSet::default();
        for &(blank, last) in blanks.iter().flatten().collect::<BTreeSet<_>>() {
            let x = self.arena.under(condition, blank);
            for way in self.ways(x, budget)?.iter() {
                let (left, _) = self.arena.under_condition(way.1);
                if free.contains(&(last, left)) && self.arena.nullable(left) {
                    escaping.insert((blank, last));
                }
            }
        }
        Ok(blanks.iter().all(|mode| mode.iter().any(|blank| escaping.contains(blank))))
    }

    /// The lexemes that may stand behind a character, by its class. `None`: parsers differ in what their classes are.
    fn readable(&mut self, parsers: &[&Parser], budget: &mut Budget) -> Result<Option<Vec<Readable>>> {
        let (units, skipped) = self.units_outside_parsers();
        let ir = self.ir.clone();
        let placed = |unit: &NodeId| match &ir.nodes[*unit as usize] {
            Node::Lexemes(all) => Some(&**all),
            _ => None,
        };
        let numbers = |all: &[Placed]| all.iter().map(|one| one.last.max(one.before.unwrap_or(0))).max();
        let in_rules = units.iter().filter_map(placed).filter_map(numbers).max().map_or(1, |last| last + 1);
        let in_parsers = parsers.iter().map(|parser| parser.classes()).max().unwrap_or(1);
        let differ = parsers.iter().any(|parser| parser.modes() != parsers[0].modes());
        let unlike = units.iter().any(|unit| placed(unit).is_none());
        if in_parsers > 1 && (differ || !units.is_empty()) || in_rules > 1 && (unlike || !parsers.is_empty()) {
            return Ok(None);
        }
        let classes = in_rules.max(in_parsers);
        let mut readable = Vec::new();
        for class in 0..classes {
            let mut next = Readable { is_whole: true, ..Readable::default() };
            let mut blanks = BTreeSet::new();
            for &unit in &units {
                let is_blank = skipped.contains(&unit);
                let Some(all) = placed(&unit) else {
                    self.add_readable(&mut next, (unit, 0), is_blank.then_some(&mut blanks), budget)?;
                    continue;
                };
                let mut read = false;
                for one in all.iter().filter(|one| one.before.is_none_or(|before| before == class)) {
                    let blanks = is_blank.then_some(&mut blanks);
                    read |= self.add_readable(&mut next, (one.text, one.last), blanks, budget)?;
                }
                next.is_whole &= read || is_blank;
            }
            if !units.is_empty() {
                next.blanks.insert(blanks);
            }
            for parser in parsers {
                for modes in parser.modes().chunks(classes as usize) {
                    let (mut read, mut blanks) = (FxHashSet::default(), BTreeSet::new());
                    for &lexeme in &modes[class as usize] {
                        let Lexeme { terminal, text, last } = lexeme;
                        let blanks = parser.is_ignored(terminal).then_some(&mut blanks);
                        if self.add_readable(&mut next, (text, last), blanks, budget)? {
                            read.insert(terminal);
                        }
                    }
                    next.blanks.insert(blanks);
                    let mut others = modes.iter().flatten().filter(|lexeme| !parser.is_ignored(lexeme.terminal));
                    next.is_whole &= classes == 1 || others.all(|lexeme| read.contains(&lexeme.terminal));
                }
            }
            readable.push(next);
        }
        Ok(Some(readable))
    }

    /// Adds a lexeme, to the blanks of its mode if it is one, unless it takes no text. Returns whether it does.
    fn add_readable(
        &mut self,
        next: &mut Readable,
        (text, last): (NodeId, u32),
        blanks: Option<&mut BTreeSet<(Id, u32)>>,
        budget: &mut Budget,
    ) -> Result<bool> {
        let x = self.whole_lexeme(text, budget)?;
        if !self.arena.alive(x, budget)? {
            return Ok(false);
        }
        next.all.insert((x, last));
        blanks.unwrap_or(&mut next.needed).insert((x, last));
        Ok(true)
    }

    /// The lexemes of rules that are no parser's, and those that may stand before any of them.
    fn units_outside_parsers(&self) -> (FxHashSet<NodeId>, FxHashSet<NodeId>) {
        let (mut units, mut skipped): (FxHashSet<NodeId>, FxHashSet<NodeId>) = Default::default();
        let mut todo: Vec<NodeId> = self.ir.rules.clone();
        let mut met: FxHashSet<NodeId> = FxHashSet::default();
        while let Some(node) = todo.pop() {
            if !met.insert(node) {
                continue;
            }
            match &self.ir.nodes[node as usize] {
                Node::Text(os) => skipped.extend(os[1..].iter().copied()),
                Node::Parser(_) | Node::Nothing => continue,
                Node::Seq(os) if os.is_empty() => continue,
                _ => {}
            }
            if self.ir.is_unit(node) {
                units.insert(node);
            } else {
                self.ir.nodes[node as usize].operands(|o| todo.push(o));
            }
        }
        (units, skipped)
    }

    /// The conditions under which a lexeme can begin, each with the class of the character before it.
    fn conditions(&mut self, readable: &[Readable], budget: &mut Budget) -> Result<Vec<(u32, Id)>> {
        let mut conditions = vec![(Parser::BEFORE_TEXT, TOP)];
        let mut at = 0;
        while let Some(&(class, condition)) = conditions.get(at) {
            at += 1;
            if conditions.len() > MOST_CONDITIONS {
                break; // to find all of them would take too long: those that are found stand for the others
            }
            if condition != TOP && self.arena.is_brief(condition) {
                continue; // it is met or not by the first byte, so that other lexemes end as they do elsewhere
            }
            for &(lexeme, last) in &readable[class as usize].all {
                let x = self.arena.under(condition, lexeme);
                for left in self.conditions_behind(x, budget)? {
                    if !conditions.contains(&(last, left)) {
                        conditions.push((last, left));
                    }
                }
            }
        }
        Ok(conditions)
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
            add(&mut self.arena, tail);
            if found.is_empty() || !self.arena.first(tail, budget)?.is_empty() {
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

    /// Whether what ends a line can go on with another line end and blanks, so that a line of a width that fits no block
    /// is none that the text has to keep.
    fn lines_go_on(&mut self, parser: &Parser, budget: &mut Budget) -> Result<bool> {
        let Some(indenter) = parser.indenter() else { return Ok(true) };
        let lexemes: FxHashSet<NodeId> = parser
            .all_lexemes()
            .filter(|lexeme| lexeme.terminal == indenter.newline)
            .map(|lexeme| lexeme.text)
            .collect();
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
    fn all_begin(&mut self, condition: Id, lexemes: &BTreeSet<(Id, u32)>, budget: &mut Budget) -> Result<bool> {
        for &(lexeme, _) in lexemes {
            let x = self.arena.under(condition, lexeme);
            if !self.arena.alive(x, budget)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// By terminal of a parser: the terminals that cannot come behind it, whatever its text is, nor behind ignored text.
    pub(super) fn kept_apart(&mut self, parser: &Parser, budget: &mut Budget) -> Result<FxHashMap<u32, Numbers>> {
        let mut kept_apart: FxHashMap<u32, Numbers> = FxHashMap::default();
        if parser.classes() > 1 || parser.indenter().is_some() {
            return Ok(kept_apart); // what can come depends on more than terminals
        }
        let mut lexemes: BTreeSet<(u32, Id)> = BTreeSet::new();
        for Lexeme { terminal, text, .. } in parser.all_lexemes() {
            let x = self.whole_lexeme(text, budget)?;
            if self.arena.alive(x, budget)? {
                lexemes.insert((terminal, x));
            }
        }
        let mut conditions: FxHashMap<u32, FxHashSet<Id>> = FxHashMap::default();
        for &(terminal, x) in &lexemes {
            let ways = self.ways(x, budget)?;
            let conditions = conditions.entry(terminal).or_default();
            conditions.extend(ways.iter().map(|way| self.arena.under_condition(way.1).0));
            if !self.knows_all_ways(x) {
                conditions.insert(TOP);
            }
        }
        let mut behind: FxHashMap<Id, FxHashSet<u32>> = FxHashMap::default();
        conditions.retain(|_, conditions| !conditions.is_empty());
        for (terminal, conditions) in conditions {
            let mut refused: FxHashSet<u32> = lexemes.iter().map(|lexeme| lexeme.0).chain([Parser::END]).collect();
            for condition in conditions {
                let known = behind.get(&condition).cloned();
                let following = match known {
                    Some(known) => known,
                    None => self.following(condition, &lexemes, budget)?,
                };
                if following.iter().any(|&terminal| parser.is_ignored(terminal)) {
                    refused.clear();
                }
                refused.retain(|terminal| !following.contains(terminal));
                behind.insert(condition, following);
            }
            if !refused.is_empty() {
                kept_apart.insert(terminal, Numbers::of(refused));
            }
        }
        Ok(kept_apart)
    }

    /// The terminals of lexemes that can begin under a condition, with the end of the text if it can come.
    fn following(
        &mut self,
        condition: Id,
        lexemes: &BTreeSet<(u32, Id)>,
        budget: &mut Budget,
    ) -> Result<FxHashSet<u32>> {
        let mut following = FxHashSet::default();
        if self.arena.nullable(condition) {
            following.insert(Parser::END);
        }
        for &(terminal, x) in lexemes {
            let x = self.arena.under(condition, x);
            if !following.contains(&terminal) && self.arena.alive(x, budget)? {
                following.insert(terminal);
            }
        }
        Ok(following)
    }

    /// A lexeme with a tag that means nothing.
    pub(super) fn whole_lexeme(&mut self, node: NodeId, budget: &mut Budget) -> Result<Id> {
        let x = self.lexeme_text(node, budget)?;
        let end = self.accept(BOTTOM);
        let x = self.arena.concat_within(x, end, budget)?;
        Ok(self.arena.lexeme(x))
    }
}
