//! Grammars as the front-ends describe them: hash-consed expressions, independent of any vocabulary.
//!
//! The front-ends describe a grammar to an [`IrBuilder`], node by node; out comes an [`Ir`]: expressions, rules, and what
//! is known of them without a vocabulary ([`Facts`]). `encode.rs` writes a grammar as flat arrays of numbers, which
//! `decode.rs` reads again: so grammars are serialised (`portable.rs`) and embedded in others. The numbers of operations
//! have one source, `codes.rs`.

mod builder;
pub mod codes;
mod components;
mod decode;
mod encode;
mod kinds;
mod needed;
mod parameters;
mod parser;
mod portable;

use std::hash::{Hash, Hasher};

use smallvec::SmallVec;

use crate::byteset::ByteSet;
use crate::error::{Error, Result};

pub use builder::IrBuilder;
pub use codes::numbers;
pub use components::{Components, components};
pub use decode::Parts;
pub use encode::Encoded;
pub use kinds::Kinds;
pub use parameters::{Guard, Layout, Update, Value};
pub use parser::{Action, Indenter, Lexeme, Parser};

/// Index of an expression in [`Ir::nodes`]; operands come before the expressions that use them.
pub type NodeId = u32;
/// Index of a rule.
pub type RuleId = u32;

/// The operands of an expression: those of most are in the expression itself.
pub type Operands = SmallVec<[NodeId; 6]>;

/// No upper bound of a repetition.
pub const UNBOUNDED: u32 = u32::MAX;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    Nothing,
    Literal(Box<[u8]>),
    Bytes(ByteSet),
    /// Inclusive ranges of code points, spelled as UTF-8.
    Codepoints(Box<[(u32, u32)]>),
    Seq(Operands),
    Alt(Operands),
    Repeat(NodeId, u32, u32),
    Both(Operands),
    Complement(NodeId),
    /// Zero-width: the rest of the terminal is in the operand.
    Ahead(NodeId),
    /// Zero-width: the text of the terminal so far is in the operand.
    Behind(NodeId),
    /// A lexical unit.
    Terminal(NodeId),
    Call(RuleId),
    /// What a rule describes, given a parameter.
    CallWith(RuleId, Update),
    /// The empty text, if the parameter of the rule around it meets the condition; else nothing.
    When(Guard),
    /// Any of these texts, sorted and without repetition.
    Words(Box<[Box<[u8]>]>),
    /// A lexical unit whose assertions about what follows see the text behind it, to the end of the `Text` around it.
    Lexeme(NodeId),
    /// A lexical unit: any of these, as the character before it is.
    Lexemes(Box<[Placed]>),
    /// What assertions of lexemes see: it is the whole body of a rule. The first node describes it, before each lexeme in
    /// it and at its end any of the others may stand.
    Text(Operands),
    /// The texts that a lexer and an LR parser take: it is the whole body of a rule, and a `Text` of its own.
    Parser(Box<Parser>),
}

/// A lexeme of a terminal that looks at the character before it, or stands among such terminals.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Placed {
    /// The class of the character before it; `None`: any.
    pub before: Option<u32>,
    pub text: NodeId,
    /// The class of its last character. Class 0 is also that of the beginning of a text.
    pub last: u32,
}

/// Bytes of a literal text at most, where it is not part of a lexical unit; longer ones are sequences of such pieces.
pub const PIECE: usize = 4096;

/// What is known of an expression without a vocabulary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Calls no rule but regular ones, and none in a cycle.
    pub regular: bool,
    /// Regular and without a `Terminal` inside: may be joined with its neighbours into one lexical unit.
    pub flat: bool,
    /// Depends on the parameter of the rule around it.
    pub parameter: bool,
    /// Contains `Ahead` or `Behind` outside any `Terminal`: must stay one lexical unit, as it is.
    pub looks: bool,
}

/// A grammar.
#[derive(Debug, PartialEq, Eq)]
pub struct Ir {
    pub nodes: Vec<Node>,
    pub facts: Vec<Facts>,
    /// The body of each rule; the last rule is the start.
    pub rules: Vec<NodeId>,
    pub names: Vec<String>,
    /// The marks of each rule; empty if no rule has any.
    pub kinds: Vec<Kinds>,
    /// Deepest nesting of expressions.
    pub depth: usize,
}

impl Hash for Ir {
    /// What everything else follows from.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.nodes, &self.rules, &self.names, &self.kinds).hash(state);
    }
}

impl Ir {
    /// Bytes that the grammar holds.
    pub fn memory(&self) -> usize {
        let each = size_of::<Node>() + size_of::<Facts>();
        let nodes: usize = self.nodes.iter().map(|node| each + node.boxed()).sum();
        let names: usize = self.names.iter().map(|name| size_of::<String>() + name.len()).sum();
        nodes + names + self.rules.len() * size_of::<NodeId>() + self.kinds.len()
    }

    /// The rule that describes a whole text.
    pub fn start(&self) -> RuleId {
        self.rules.len() as RuleId - 1
    }

    pub fn body(&self, rule: RuleId) -> NodeId {
        self.rules[rule as usize]
    }

    /// Whether the expression is one lexical unit (or part of one): all the others are taken apart at run time.
    pub fn is_unit(&self, node: NodeId) -> bool {
        let facts = self.facts[node as usize];
        match self.nodes[node as usize] {
            Node::Lexeme(_) | Node::Lexemes(_) => true,
            Node::Terminal(_) => facts.regular,
            _ => facts.regular && (facts.flat || facts.looks),
        }
    }

    /// Whether the expression is one that a lexer can take: a unit that is no choice by the character before.
    fn is_lexeme(&self, node: NodeId) -> bool {
        self.is_unit(node) && !matches!(self.nodes[node as usize], Node::Lexemes(_))
    }

    /// The parser that a rule is the language of.
    pub fn parser(&self, rule: RuleId) -> Option<&Parser> {
        match &self.nodes[self.body(rule) as usize] {
            Node::Parser(parser) => Some(parser),
            _ => None,
        }
    }

    /// Whether assertions of lexemes in a rule see no further than its text.
    pub fn is_text(&self, rule: RuleId) -> bool {
        matches!(self.nodes[self.body(rule) as usize], Node::Text(_) | Node::Parser(_))
    }

    /// Whether what may follow a terminal can depend on more than the rules.
    pub fn has_lexemes(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node, Node::Lexeme(_) | Node::Lexemes(_) | Node::Parser(_)))
    }

    /// Checks the context conditions and computes the facts of hash-consed nodes.
    fn analysed(nodes: Vec<Node>, rules: Vec<NodeId>, names: Vec<String>, kinds: Vec<Kinds>) -> Result<Ir> {
        let mut depth = vec![0u32; nodes.len()];
        let mut deepest = 0;
        for (i, node) in nodes.iter().enumerate() {
            let mut below = 0;
            node.operands(|o| below = below.max(depth[o as usize] + 1));
            depth[i] = below;
            deepest = deepest.max(below);
        }
        let mut ir =
            Ir { facts: vec![Facts::default(); nodes.len()], nodes, rules, names, kinds, depth: deepest as usize };
        ir.find_facts();
        for (i, node) in ir.nodes.iter().enumerate() {
            let bad = |o: &NodeId| !ir.facts[*o as usize].regular;
            let (wrong, what) = match node {
                Node::Both(os) => (os.iter().any(bad), "both"),
                Node::Complement(o) => (bad(o), "complement"),
                Node::Ahead(o) => (bad(o), "ahead"),
                Node::Behind(o) => (bad(o), "behind"),
                Node::Terminal(o) => (bad(o), "terminal"),
                Node::Lexeme(o) => (bad(o), "lexeme"),
                Node::Lexemes(all) => (all.iter().any(|one| !ir.is_unit(one.text)), "lexemes"),
                Node::Parser(parser) => (parser.lexemes().any(|lexeme| !ir.is_lexeme(lexeme)), "parser"),
                _ => (false, ""),
            };
            if wrong {
                return Err(Error::Unsupported(format!(
                    "`{what}` takes regular expressions only; node {i} gives it one that calls a recursive rule or \
                     depends on a parameter"
                )));
            }
        }
        for node in &ir.nodes {
            if let Node::Behind(o) = node
                && ir.facts[*o as usize].looks
                && ir.below(*o).any(|n| matches!(ir.nodes[n as usize], Node::Ahead(_)))
            {
                return Err(Error::Unsupported(
                    "an assertion about what follows is not supported inside one about what comes before it".into(),
                ));
            }
        }
        Ok(ir)
    }

    /// Whether a parser counts the blanks of lines.
    pub fn counts_columns(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node, Node::Parser(parser) if parser.indenter().is_some()))
    }

    /// The expression and all below it.
    fn below(&self, root: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut todo = vec![root];
        std::iter::from_fn(move || {
            loop {
                let n = todo.pop()?;
                if seen.insert(n) {
                    self.nodes[n as usize].operands(|o| todo.push(o));
                    return Some(n);
                }
            }
        })
    }

    /// Finds the facts of all expressions: rules come after those that they call, and rules in a cycle of calls are not
    /// regular.
    fn find_facts(&mut self) {
        let calls: Vec<Vec<RuleId>> = {
            // calls of each rule body, found by a walk over shared sub-expressions that have any
            let mut calling = vec![false; self.nodes.len()];
            for (id, node) in self.nodes.iter().enumerate() {
                let mut calls = matches!(node, Node::Call(_) | Node::CallWith(..));
                node.operands(|o| calls |= calling[o as usize]); // operands have lower ids
                calling[id] = calls;
            }
            let mut seen = vec![RuleId::MAX; self.nodes.len()];
            (0..self.rules.len() as RuleId)
                .map(|r| {
                    let mut out = Vec::new();
                    let mut todo = vec![self.body(r)];
                    while let Some(n) = todo.pop() {
                        if std::mem::replace(&mut seen[n as usize], r) == r {
                            continue;
                        }
                        if let Node::Call(c) | Node::CallWith(c, _) = self.nodes[n as usize] {
                            out.push(c);
                        }
                        self.nodes[n as usize].operands(|o| {
                            if calling[o as usize] {
                                todo.push(o);
                            }
                        });
                    }
                    out
                })
                .collect()
        };
        let cyclic = components(&calls);
        let mut rules = vec![Facts::default(); self.rules.len()];
        let mut found = vec![false; self.nodes.len()];
        let (start, others) = cyclic.order.split_last().expect("a grammar has a start, which calls come from");
        debug_assert_eq!(*start, self.start());
        for &rule in others {
            if !cyclic.recursive[rule as usize] {
                self.find_facts_below(self.body(rule), &rules, &mut found);
                rules[rule as usize] = self.facts[self.body(rule) as usize];
            }
        }
        for (id, found) in found.into_iter().enumerate() {
            if !found {
                self.facts[id] = self.facts_of(id as NodeId, &rules);
            }
        }
    }

    /// Facts of one expression, from its operands' facts in `self.facts`.
    fn facts_of(&self, id: NodeId, rules: &[Facts]) -> Facts {
        let node = &self.nodes[id as usize];
        if let Node::Call(rule) = node {
            if self.kinds.get(*rule as usize).is_some_and(|&kinds| kinds != Kinds::default()) {
                return Facts::default();
            }
            // a rule with assertions stays a call, so that they see no further than the rule's own text
            let facts = rules[*rule as usize];
            return if facts.looks { Facts::default() } else { Facts { parameter: false, ..facts } };
        }
        match node {
            Node::CallWith(_, update) => return Facts { parameter: !update.fresh, ..Facts::default() },
            Node::When(_) => return Facts { parameter: true, ..Facts::default() },
            Node::Lexeme(_) | Node::Lexemes(_) | Node::Parser(_) => return Facts::default(),
            Node::Text(os) => return Facts { parameter: self.facts[os[0] as usize].parameter, ..Facts::default() },
            _ => {}
        }
        let looks = matches!(node, Node::Ahead(_) | Node::Behind(_));
        let mut facts = Facts { regular: true, flat: true, parameter: false, looks };
        node.operands(|o| {
            let f = self.facts[o as usize];
            facts.regular &= f.regular;
            facts.flat &= f.flat;
            facts.looks |= f.looks;
            facts.parameter |= f.parameter;
        });
        match node {
            Node::Terminal(_) => (facts.flat, facts.looks) = (false, false),
            // long texts are left in pieces
            Node::Seq(os) => {
                facts.flat &= os.iter().map(|&o| self.nodes[o as usize].literal_bytes()).sum::<usize>() <= PIECE
            }
            // Boolean operators have no use for the cuts inside them.
            Node::Both(_) | Node::Complement(_) => facts.flat = facts.regular,
            _ => {}
        }
        facts
    }

    /// Finds the facts of an expression and of all below it. The rules that these call come before.
    fn find_facts_below(&mut self, root: NodeId, rules: &[Facts], found: &mut [bool]) {
        let mut below = Vec::new();
        let mut todo = vec![root];
        while let Some(id) = todo.pop() {
            if !std::mem::replace(&mut found[id as usize], true) {
                below.push(id);
                self.nodes[id as usize].operands(|operand| todo.push(operand));
            }
        }
        below.sort_unstable(); // operands have lower ids
        for id in below {
            self.facts[id as usize] = self.facts_of(id, rules);
        }
    }
}

impl Node {
    /// The bytes of a literal; none of other expressions.
    pub fn literal_bytes(&self) -> usize {
        match self {
            Node::Literal(text) => text.len(),
            _ => 0,
        }
    }

    /// Bytes that it holds outside of itself.
    fn boxed(&self) -> usize {
        match self {
            Node::Literal(text) => text.len(),
            Node::Codepoints(ranges) => size_of_val(&**ranges),
            Node::Seq(os) | Node::Alt(os) | Node::Both(os) | Node::Text(os) if os.spilled() => size_of_val(&**os),
            Node::Words(texts) => texts.iter().map(|text| size_of_val(text) + text.len()).sum(),
            Node::Lexemes(all) => size_of_val(&**all),
            Node::Parser(parser) => parser.memory(),
            _ => 0,
        }
    }

    /// Calls `f` for every operand expression.
    pub fn operands(&self, mut f: impl FnMut(NodeId)) {
        match self {
            Node::Seq(os) | Node::Alt(os) | Node::Both(os) | Node::Text(os) => os.iter().copied().for_each(f),
            Node::Repeat(o, ..) | Node::Complement(o) | Node::Ahead(o) | Node::Behind(o) => f(*o),
            Node::Terminal(o) | Node::Lexeme(o) => f(*o),
            Node::Lexemes(all) => all.iter().for_each(|one| f(one.text)),
            Node::Parser(parser) => parser.lexemes().for_each(f),
            Node::Nothing
            | Node::Literal(_)
            | Node::Bytes(_)
            | Node::Codepoints(_)
            | Node::Call(_)
            | Node::CallWith(..)
            | Node::When(_)
            | Node::Words(_) => {}
        }
    }

    /// Calls `f` for every operand expression, to change it.
    fn operands_mut(&mut self, mut f: impl FnMut(&mut NodeId)) {
        match self {
            Node::Seq(os) | Node::Alt(os) | Node::Both(os) | Node::Text(os) => os.iter_mut().for_each(f),
            Node::Repeat(o, ..) | Node::Complement(o) | Node::Ahead(o) | Node::Behind(o) => f(o),
            Node::Terminal(o) | Node::Lexeme(o) => f(o),
            Node::Lexemes(all) => all.iter_mut().for_each(|one| f(&mut one.text)),
            Node::Parser(parser) => parser.lexemes_mut().for_each(f),
            Node::Nothing
            | Node::Literal(_)
            | Node::Bytes(_)
            | Node::Codepoints(_)
            | Node::Call(_)
            | Node::CallWith(..)
            | Node::When(_)
            | Node::Words(_) => {}
        }
    }
}
