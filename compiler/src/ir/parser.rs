//! LR parsers as front-ends describe them: a lexer for each state, and tables of actions.
//!
//! In a state, the lexer takes the lexemes of one of its *modes*. Each lexeme says itself when it is taken: by its
//! assertions, it excludes texts that begin with a lexeme of higher priority. So the modes are sets.
//!
//! Where terminals look at the character before them, characters are sorted into classes that they tell apart. Each mode
//! has then a set of lexemes for each class of the character before, and each lexeme says the class of its last one.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use super::NodeId;

/// Some texts of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lexeme {
    pub terminal: u32,
    /// The node of the texts.
    pub text: NodeId,
    /// The class of their last character.
    pub last: u32,
}

/// A grammar's parser, with its lexer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Parser {
    /// By rule: the symbol that it derives, and the symbols that it consists of. Terminals have numbers among these, too.
    rules: Box<[(u32, Box<[u32]>)]>,
    /// The lexemes of each mode, for each class of the character before. A terminal may occur several times.
    modes: Box<[Box<[Lexeme]>]>,
    /// The number of classes of characters.
    classes: u32,
    states: Box<[State]>,
    /// The terminals that are passed over.
    ignored: Box<[u32]>,
    indenter: Option<Indenter>,
    /// Where conflicts were resolved: a state, a rule that is complete there, and the terminals that may come behind it
    /// before which it is not reduced. Sorted.
    refused: Box<[Refused]>,
    /// The state before the text.
    pub start: u32,
    /// The state in which the whole text has been read.
    end: u32,
}

/// What makes tokens of the indentation of lines: those of `lark.indenter`, which are those of Python.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Indenter {
    /// The terminal whose tokens end lines: blanks behind the last line end in it are the width of the next line.
    pub newline: u32,
    /// The terminals that stand for a wider line, and for the end of a block.
    pub indent: u32,
    pub dedent: u32,
    /// How many blanks a tab is.
    pub tab: u32,
    /// Between these terminals, line ends are passed over.
    pub opening: Box<[u32]>,
    pub closing: Box<[u32]>,
}

/// A state, a rule, and terminals.
type Refused = (u32, u32, Box<[u32]>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// That of the first class of characters; those of the others follow.
    mode: u32,
    /// What to do before a terminal, sorted; [`Parser::END`] is what stands behind the text. Where there are several ways,
    /// all of them are followed.
    actions: Box<[(u32, Action)]>,
    /// The state after a symbol, sorted.
    gotos: Box<[(u32, u32)]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// Go on in this state.
    Shift(u32),
    /// Replace the states of a rule's symbols by that of the symbol that it derives.
    Reduce(u32),
}

impl Parser {
    /// The terminal behind the text.
    pub const END: u32 = u32::MAX;
    /// The class of characters before the text.
    pub const BEFORE_TEXT: u32 = 0;

    /// Bytes that it holds.
    pub(super) fn memory(&self) -> usize {
        let rules: usize = self.rules.iter().map(|rule| size_of_val(rule) + size_of_val(&*rule.1)).sum();
        let modes: usize = self.modes.iter().map(|lexemes| size_of_val(lexemes) + size_of_val(&**lexemes)).sum();
        let states = self.states.iter();
        let refused = self.refused.iter().map(|refused| size_of_val(refused) + size_of_val(&*refused.2));
        let states: usize = states.map(|s| size_of_val(s) + size_of_val(&*s.actions) + size_of_val(&*s.gotos)).sum();
        size_of_val(self) + rules + modes + states + refused.sum::<usize>()
    }

    /// What to do in a state before a terminal, in any of several ways; nothing: it cannot come there.
    pub fn actions_before(&self, state: u32, terminal: u32) -> &[(u32, Action)] {
        let actions = &self.states[state as usize].actions;
        let found = &actions[actions.partition_point(|a| a.0 < terminal)..];
        &found[..found.iter().take_while(|a| a.0 == terminal).count()]
    }

    /// What to do in a state before each terminal that may come there, by its number.
    pub fn actions(&self, state: u32) -> &[(u32, Action)] {
        &self.states[state as usize].actions
    }

    /// The rules: the symbol that each derives, and the symbols that it consists of.
    pub fn rules(&self) -> &[(u32, Box<[u32]>)] {
        &self.rules
    }

    /// The symbol that a rule derives, and the number of symbols that it consists of.
    pub fn rule(&self, rule: u32) -> (u32, usize) {
        let (symbol, parts) = &self.rules[rule as usize];
        (*symbol, parts.len())
    }

    /// The number of states.
    pub fn states(&self) -> u32 {
        self.states.len() as u32
    }

    /// The terminals that may come in a state, as far as its table tells, but for the end of the text.
    pub fn expected(&self, state: u32) -> impl Iterator<Item = u32> + '_ {
        self.states[state as usize].actions.iter().map(|a| a.0).filter(|&terminal| terminal != Parser::END)
    }

    /// The number of classes that characters before a lexeme are sorted into.
    pub fn classes(&self) -> u32 {
        self.classes
    }

    /// The state after a symbol or terminal.
    pub fn next(&self, state: u32, symbol: u32) -> Option<u32> {
        self.shift(state, symbol).or_else(|| self.goto(state, symbol))
    }

    /// The state after a symbol.
    pub fn goto(&self, state: u32, symbol: u32) -> Option<u32> {
        let gotos = &self.states[state as usize].gotos;
        gotos.binary_search_by_key(&symbol, |g| g.0).ok().map(|i| gotos[i].1)
    }

    /// The state after a terminal that is shifted.
    pub fn shift(&self, state: u32, terminal: u32) -> Option<u32> {
        self.actions_before(state, terminal).iter().find_map(|&(_, action)| match action {
            Action::Shift(next) => Some(next),
            Action::Reduce(_) => None,
        })
    }

    /// The states after the symbols that may be derived in a state, by symbol.
    pub fn gotos(&self, state: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.states[state as usize].gotos.iter().copied()
    }

    /// The terminals that may come behind a rule that is complete in a state, but before which it is not reduced.
    pub fn refused(&self, state: u32, rule: u32) -> &[u32] {
        let found = self.refused.binary_search_by_key(&(state, rule), |refused| (refused.0, refused.1));
        found.map_or(&[], |at| &*self.refused[at].2)
    }

    /// Whether there are any such.
    pub fn refuses(&self) -> bool {
        !self.refused.is_empty()
    }

    /// What makes tokens of indentation, if anything does.
    pub fn indenter(&self) -> Option<&Indenter> {
        self.indenter.as_ref()
    }

    /// The state in which the whole text has been read.
    pub fn end(&self) -> u32 {
        self.end
    }

    /// The symbol that leads from one state to another.
    pub fn symbol_into(&self, from: u32, to: u32) -> Option<u32> {
        self.states[from as usize].gotos.iter().find(|g| g.1 == to).map(|g| g.0)
    }

    /// Whether the whole text has been read when a state is reached before its end.
    pub fn is_end(&self, state: u32) -> bool {
        state == self.end
    }

    /// Whether the empty text is one that it takes.
    pub fn takes_nothing(&self) -> bool {
        let mut stack = vec![self.start];
        let mut left = self.states.len() * self.rules.len().max(1);
        while let Some(&top) = stack.last()
            && left > 0
        {
            left -= 1;
            let rule = match self.actions_before(top, Parser::END) {
                &[(_, Action::Reduce(rule))] => rule,
                [] | [_] => return false,
                // all ways are followed, so that the rules alone decide
                _ => return self.symbol_into(self.start, self.end).is_some_and(|whole| self.is_nullable(whole)),
            };
            let (symbol, length) = self.rule(rule);
            let below = stack.len().saturating_sub(length);
            stack.truncate(below);
            let Some(next) = stack.last().and_then(|&state| self.goto(state, symbol)) else { return false };
            if self.is_end(next) {
                return true;
            }
            stack.push(next);
        }
        false
    }

    /// Whether the rules derive the empty text from a symbol. Each rule is looked at once for each of its parts.
    fn is_nullable(&self, symbol: u32) -> bool {
        let mut waiting: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        let mut missing: Vec<usize> = Vec::with_capacity(self.rules.len());
        for (rule, (_, parts)) in self.rules.iter().enumerate() {
            parts.iter().for_each(|&part| waiting.entry(part).or_default().push(rule));
            missing.push(parts.len());
        }
        let mut todo: Vec<usize> = (0..missing.len()).filter(|&rule| missing[rule] == 0).collect();
        let mut found: FxHashSet<u32> = FxHashSet::default();
        while let Some(rule) = todo.pop() {
            let made = self.rules[rule].0;
            if !found.insert(made) {
                continue;
            }
            for &rule in waiting.get(&made).into_iter().flatten() {
                missing[rule] -= 1;
                if missing[rule] == 0 {
                    todo.push(rule);
                }
            }
        }
        found.contains(&symbol)
    }

    /// The mode in which the lexer reads on in a state, behind a character of a class.
    pub fn mode(&self, state: u32, class: u32) -> u32 {
        self.states[state as usize].mode + class
    }

    /// The lexemes of all modes, one mode after the other: those for each class of characters before them.
    pub fn modes(&self) -> &[Box<[Lexeme]>] {
        &self.modes
    }

    pub fn is_ignored(&self, terminal: u32) -> bool {
        self.ignored.contains(&terminal)
    }

    /// The lexemes of all modes.
    pub fn all_lexemes(&self) -> impl Iterator<Item = Lexeme> + '_ {
        self.modes.iter().flat_map(|mode| mode.iter().copied())
    }

    /// The texts of all lexemes.
    pub fn lexemes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.all_lexemes().map(|lexeme| lexeme.text)
    }

    /// The texts of all lexemes, to be changed.
    pub(super) fn lexemes_mut(&mut self) -> impl Iterator<Item = &mut NodeId> {
        self.modes.iter_mut().flatten().map(|lexeme| &mut lexeme.text)
    }

    /// The parser in the builder's numbers; `node` gives those of nodes.
    pub(super) fn encode(&self, node: impl Fn(NodeId) -> u32) -> Vec<u32> {
        let mut out = vec![self.start, self.end, self.classes];
        fn list<T>(out: &mut Vec<u32>, items: &[T], mut put: impl FnMut(&mut Vec<u32>, &T)) {
            out.push(items.len() as u32);
            items.iter().for_each(|item| put(out, item));
        }
        let pair = |out: &mut Vec<u32>, &(a, b): &(u32, u32)| out.extend([a, b]);
        list(&mut out, &self.rules, |out, (symbol, parts)| {
            out.push(*symbol);
            list(out, parts, |out, &part| out.push(part));
        });
        list(&mut out, &self.ignored, |out, &terminal| out.push(terminal));
        list(&mut out, &self.refused, |out, (state, rule, terminals)| {
            out.extend([*state, *rule]);
            list(out, terminals, |out, &terminal| out.push(terminal));
        });
        list(&mut out, &self.modes, |out, mode| {
            list(out, mode, |out, &lexeme| {
                let Lexeme { terminal, text, last } = lexeme;
                out.extend([terminal, node(text), last]);
            })
        });
        list(&mut out, &self.states, |out, state| {
            out.push(state.mode);
            list(out, &state.actions, |out, &(terminal, action)| {
                let (to, reduces) = match action {
                    Action::Shift(state) => (state, 0),
                    Action::Reduce(rule) => (rule, 1),
                };
                out.extend([terminal, reduces, to]);
            });
            list(out, &state.gotos, pair);
        });
        if let Some(i) = &self.indenter {
            out.extend([i.newline, i.indent, i.dedent, i.tab]);
            list(&mut out, &i.opening, |out, &terminal| out.push(terminal));
            list(&mut out, &i.closing, |out, &terminal| out.push(terminal));
        }
        out
    }

    /// A parser from the builder's numbers; `node` gives the nodes of its lexemes.
    pub(super) fn decode(numbers: &[u32], node: impl Fn(u32) -> Result<NodeId, String>) -> Result<Parser, String> {
        let mut r = Numbers(numbers);
        let (start, end, classes) = (r.next()?, r.next()?, r.next()?);
        let rules = r.list(|r| Ok((r.next()?, r.list(Numbers::next)?)))?;
        let ignored = r.list(Numbers::next)?;
        let mut refused = r.list(|r| Ok((r.next()?, r.next()?, r.list(Numbers::next)?)))?;
        refused.sort_unstable();
        let modes =
            r.list(|r| r.list(|r| Ok(Lexeme { terminal: r.next()?, text: node(r.next()?)?, last: r.next()? })))?;
        let states = r.list(|r| {
            let mode = r.next()?;
            let mut actions = r
                .list(|r| {
                    let (terminal, reduces, to) = (r.next()?, r.next()?, r.next()?);
                    Ok((terminal, if reduces == 0 { Action::Shift(to) } else { Action::Reduce(to) }))
                })?
                .into_vec();
            let mut gotos = r.list(|r| Ok((r.next()?, r.next()?)))?.into_vec();
            actions.sort_unstable();
            gotos.sort_unstable_by_key(|g| g.0);
            Ok(State { mode, actions: actions.into(), gotos: gotos.into() })
        })?;
        let mut indenter = None;
        if !r.0.is_empty() {
            let (newline, indent, dedent, tab) = (r.next()?, r.next()?, r.next()?, r.next()?);
            let (opening, closing) = (r.list(Numbers::next)?, r.list(Numbers::next)?);
            indenter = Some(Indenter { newline, indent, dedent, tab, opening, closing });
        }
        let mut parser = Parser { rules, modes, classes, states, ignored, refused, indenter, start, end };
        parser.number_symbols();
        if r.0.is_empty() && parser.is_sound() { Ok(parser) } else { Err("a parser's tables do not fit".into()) }
    }

    /// Gives symbols and terminals the numbers from 0 on, in their order: sets of them are bits.
    fn number_symbols(&mut self) {
        let mut numbers: BTreeSet<u32> = BTreeSet::new();
        self.each_symbol(&mut |symbol| {
            numbers.insert(*symbol);
        });
        numbers.remove(&Parser::END);
        let numbers: FxHashMap<u32, u32> = numbers.into_iter().zip(0..).collect();
        self.each_symbol(&mut |symbol| *symbol = *numbers.get(symbol).unwrap_or(&Parser::END));
    }

    fn each_symbol(&mut self, visit: &mut dyn FnMut(&mut u32)) {
        for (symbol, parts) in &mut self.rules {
            visit(symbol);
            parts.iter_mut().for_each(&mut *visit);
        }
        self.modes.iter_mut().flatten().for_each(|lexeme| visit(&mut lexeme.terminal));
        for state in &mut self.states {
            state.actions.iter_mut().for_each(|action| visit(&mut action.0));
            state.gotos.iter_mut().for_each(|goto| visit(&mut goto.0));
        }
        self.ignored.iter_mut().for_each(&mut *visit);
        self.refused.iter_mut().flat_map(|refused| refused.2.iter_mut()).for_each(&mut *visit);
        if let Some(indenter) = &mut self.indenter {
            [&mut indenter.newline, &mut indenter.indent, &mut indenter.dedent].into_iter().for_each(&mut *visit);
            indenter.opening.iter_mut().chain(&mut indenter.closing).for_each(&mut *visit);
        }
    }

    /// Whether all that the tables refer to is there.
    fn is_sound(&self) -> bool {
        let state = |s: u32| (s as usize) < self.states.len();
        let sound = |s: &State| {
            s.mode.is_multiple_of(self.classes)
                && s.mode as usize + self.classes as usize <= self.modes.len()
                && s.gotos.iter().all(|g| state(g.1))
                && s.actions.iter().all(|a| match a.1 {
                    Action::Shift(to) => state(to),
                    Action::Reduce(rule) => (rule as usize) < self.rules.len(),
                })
        };
        let classes = self.classes > 0 && self.all_lexemes().all(|lexeme| lexeme.last < self.classes);
        classes && state(self.start) && self.states.iter().all(sound)
    }
}

/// Numbers that are read one after the other.
struct Numbers<'a>(&'a [u32]);

impl Numbers<'_> {
    fn next(&mut self) -> Result<u32, String> {
        let (&first, rest) = self.0.split_first().ok_or("a parser's tables are cut off")?;
        self.0 = rest;
        Ok(first)
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T, String>) -> Result<Box<[T]>, String> {
        let count = self.next()?;
        (0..count).map(|_| item(self)).collect()
    }
}
