//! LR parsers on graph-structured stacks (Knuth 1965; Tomita 1985), with a lexer for each state.
//!
//! A stack of a parser's states is a continuation whose frames return to positions of the kind `Pos::State`; below the
//! start state lies the caller's continuation. Between two tokens there is one head for each stack: its residual is any
//! lexeme, or ignored text, that the lexer takes in the stack's topmost state and that the parser can go on with. Which
//! these are is found out from the stack itself: LALR tables let tokens pass that are refused only after some
//! reductions.
//!
//! Where lines have tokens of their indentation, the parameter of a stack says what their indenter knows: open brackets,
//! open blocks, and the blanks of the line at hand.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::continuation::{Frame, Frames, NO_CALLEE, Stack, UNSURE};
use super::instances::{ParamId, UNSET};
use super::moves::{ActionsByState, Moves};
use super::numbers::Numbers;
use super::position::Pos;
use super::step::{Closure, Further, Head, Machine};
use crate::budget::Budget;
use crate::error::Result;
use crate::ir::{Layout, Lexeme, Parser, RuleId};
use crate::regular::{Counts, EMPTY, Id};

/// What a parser can do between two tokens.
struct Between {
    /// Any lexeme that it can go on with.
    lexemes: Id,
    /// Any lexeme of which that depends on more of the stack.
    unsure: Id,
    /// The terminals of these lexemes.
    possible: Numbers,
    open: Numbers,
    /// The callers' continuations, if the text can end here.
    callers: SmallVec<[Stack; 1]>,
    /// Whether it depends on more of the stack if the text can end here.
    may_end: bool,
}

/// How many frames of a stack are looked at before all of them are.
const DEPTHS: [u32; 3] = [1, 2, 4];

impl Between {
    /// Whether it does not depend on the rest of the stack.
    fn is_settled(&self) -> bool {
        self.open.is_empty() && !self.may_end && self.callers.is_empty()
    }
}

/// The terminals that the lexer takes in a mode.
struct Mode {
    read: Numbers,
    /// Those that the parser passes over.
    ignored: Numbers,
}

/// A set of terminals of a mode: the rule of the parser, the mode, and the terminals.
type Lexemes = (RuleId, u32, Numbers);

/// What has been found out about parsers.
#[derive(Default)]
pub(super) struct Parsers {
    /// By stack of one topmost state, and class of the character before.
    between: FxHashMap<(Stack, u32), Arc<Between>>,
    /// The stacks after a token.
    after: FxHashMap<(Stack, u32), Stack>,
    pub(super) actions: ActionsByState,
    /// By rule of the parser, and mode.
    modes: FxHashMap<(RuleId, u32), Arc<Mode>>,
    /// Words of all sets of terminals.
    pub(super) words: usize,
    lexemes: FxHashMap<Lexemes, Id>,
    /// Single lexemes, by parser.
    lexeme: FxHashMap<(RuleId, Lexeme), Id>,
    /// Whether residuals can end in a token that ends a line.
    pub(super) ends_lines: FxHashMap<Id, bool>,
}

impl Parsers {
    pub(super) fn memory(&self) -> usize {
        self.between.len() * 160
            + self.after.len() * 24
            + (self.actions.len() + self.modes.len()) * 160
            + self.lexemes.len() * 160
            + self.lexeme.len() * 32
            + self.words * 8
    }
}

impl Machine {
    /// The stack of a parser that has read nothing.
    pub(super) fn before_text(&mut self, rule: RuleId, caller: Stack) -> Stack {
        let start = self.ir.parser(rule).expect("the rule is a parser's").start;
        let frame = self.frame_of(rule, start, caller);
        self.stacks.of_frames(UNSET, &mut [frame])
    }

    pub(super) fn frame_of(&mut self, rule: RuleId, state: u32, below: Stack) -> Frame {
        Frame { callee: NO_CALLEE, back: self.positions.intern(Pos::State { rule, state }), below }
    }

    /// Adds what can follow between two tokens, behind a character of a class.
    pub(super) fn before_token(
        &mut self,
        condition: Id,
        (rule, class): (RuleId, u32),
        stack: Stack,
        (out, further): (&mut Closure, &mut Further),
        budget: &mut Budget,
    ) -> Result<()> {
        if self.stacks.is_cut_off(stack) {
            out.leave_open();
            return Ok(());
        }
        let param = self.stacks.param(stack);
        let frames: Frames = self.stacks.frames(stack).into();
        let is_single = frames.len() == 1;
        for frame in frames {
            let stack = if is_single { stack } else { self.stacks.of_frames(param, &mut [frame]) };
            let between = self.between((rule, class), stack, frame, budget)?;
            self.add_head(condition, Head { rest: between.lexemes, stack }, out);
            self.add_head(condition, Head { rest: between.unsure, stack: UNSURE }, out);
            if between.may_end && self.analysis.ends_texts(rule) {
                out.may_accept = true;
            } else if between.may_end {
                out.leave_open();
            }
            for &caller in &between.callers {
                if self.complete(condition, rule, caller, (&mut *out, &mut *further), budget)? {
                    self.return_to(condition, rule, caller, further);
                }
            }
        }
        Ok(())
    }

    /// Makes the returns of a completed rule to the frames of a continuation.
    fn return_to(&mut self, condition: Id, rule: RuleId, stack: Stack, further: &mut Further) {
        let frames: Frames = self.stacks.frames(stack).into();
        for f in frames {
            if (f.callee == NO_CALLEE || f.callee == rule) && !self.stacks.is_bottom(f) {
                further.push((condition, Head { rest: self.accept(f.back), stack: f.below }));
            }
        }
    }

    /// Adds what can follow a token.
    pub(super) fn after_token(
        &mut self,
        condition: Id,
        (rule, terminal, last): (RuleId, u32, u32),
        stack: Stack,
        (out, further): (&mut Closure, &mut Further),
        budget: &mut Budget,
    ) -> Result<()> {
        if self.stacks.is_cut_off(stack) {
            out.leave_open();
            return Ok(());
        }
        let ir = self.ir.clone();
        let parser = ir.parser(rule).expect("the rule is a parser's");
        if parser.is_ignored(terminal) {
            let stack = self.forget_column(stack, EMPTY);
            return self.before_token(condition, (rule, last), stack, (out, further), budget);
        }
        let next = match self.parsers.after.get(&(stack, terminal)) {
            Some(&known) => Some(known),
            None => {
                let Some(found) = self.read(rule, parser, stack, terminal, budget)? else {
                    out.leave_open();
                    return Ok(());
                };
                if let Some(next) = found {
                    self.parsers.after.insert((stack, terminal), next);
                }
                found
            }
        };
        match next {
            Some(next) => self.before_token(condition, (rule, last), next, (out, further), budget),
            None => Ok(()),
        }
    }

    /// The stacks after a token, and the tokens that an indenter makes of it; the inner `None`: there are none, the outer:
    /// it depends on more of the stack.
    pub(super) fn read(
        &mut self,
        rule: RuleId,
        parser: &Parser,
        stack: Stack,
        terminal: u32,
        budget: &mut Budget,
    ) -> Result<Option<Option<Stack>>> {
        let Some(indenter) = parser.indenter() else {
            return self.shift(rule, parser, stack, &[terminal], UNSET, budget);
        };
        let mut layout = self.instances.layout(self.stacks.param(stack));
        let column = layout.column.take();
        let mut tokens: SmallVec<[u32; 8]> = SmallVec::from_slice(&[terminal]);
        if indenter.opening.contains(&terminal) {
            layout.depth += 1;
        } else if indenter.closing.contains(&terminal) {
            let Some(depth) = layout.depth.checked_sub(1) else { return Ok(Some(None)) };
            layout.depth = depth;
        } else if terminal == indenter.newline && layout.depth > 0 {
            tokens.clear();
        } else if terminal == indenter.newline {
            let Some(width) = column.filter(|&width| width < Layout::WIDEST) else { return Ok(Some(None)) };
            if width > layout.indent() {
                layout.indents.push(width);
                tokens.push(indenter.indent);
            }
            while width < layout.indent() {
                layout.indents.pop();
                tokens.push(indenter.dedent);
            }
            if width != layout.indent() {
                return Ok(Some(None));
            }
        }
        let param = self.instances.of_layout(&layout);
        self.shift(rule, parser, stack, &tokens, param, budget)
    }

    /// The stacks after some tokens, below a parameter; as [`Machine::read`].
    fn shift(
        &mut self,
        rule: RuleId,
        parser: &Parser,
        mut stack: Stack,
        tokens: &[u32],
        param: ParamId,
        budget: &mut Budget,
    ) -> Result<Option<Option<Stack>>> {
        for &token in tokens {
            let mut moves = self.moves(rule, parser, stack, token, budget)?;
            if moves.cut_off {
                return Ok(None);
            }
            if moves.frames.is_empty() {
                return Ok(Some(None));
            }
            stack = self.stacks.of_frames(UNSET, &mut moves.frames);
        }
        Ok(Some(Some(self.stacks.below(param, stack))))
    }

    /// What follows at the end of the text, after the tokens that an indenter makes there.
    fn at_end(&mut self, rule: RuleId, parser: &Parser, mut stack: Stack, budget: &mut Budget) -> Result<Moves> {
        if let Some(indenter) = parser.indenter() {
            let open = self.instances.layout(self.stacks.param(stack)).indents.len();
            let tokens = vec![indenter.dedent; open];
            match self.shift(rule, parser, stack, &tokens, UNSET, budget)? {
                Some(Some(next)) => stack = next,
                Some(None) => return Ok(Moves::default()),
                None => return Ok(Moves { cut_off: true, ..Moves::default() }),
            }
        }
        self.moves(rule, parser, stack, Parser::END, budget)
    }

    /// What the parser can do between two tokens, over a stack of one topmost state. It is looked up for the topmost
    /// states first, which many stacks share; only what these leave open is found out from more of the stack.
    fn between(&mut self, place: (RuleId, u32), stack: Stack, top: Frame, budget: &mut Budget) -> Result<Arc<Between>> {
        let class = place.1;
        if let Some(known) = self.parsers.between.get(&(stack, class)) {
            return Ok(known.clone());
        }
        let mut found: Option<Arc<Between>> = None;
        for depth in DEPTHS {
            let positions = &mut self.positions;
            let mut exact = |p| positions.saturate(p, Counts::Exact);
            let (shallow, _) = self.stacks.truncate(stack, depth, Counts::Exact, &mut exact);
            if shallow == stack {
                break;
            }
            let between = match self.parsers.between.get(&(shallow, class)) {
                Some(known) => known.clone(),
                None => self.find_between(place, shallow, top, found.as_deref(), budget)?,
            };
            if between.is_settled() {
                self.parsers.between.insert((stack, class), between.clone());
                return Ok(between);
            }
            found = Some(between);
        }
        self.find_between(place, stack, top, found.as_deref(), budget)
    }

    /// The same, given what is known of fewer of the stack's frames.
    fn find_between(
        &mut self,
        (rule, class): (RuleId, u32),
        stack: Stack,
        top: Frame,
        shallow: Option<&Between>,
        budget: &mut Budget,
    ) -> Result<Arc<Between>> {
        let Pos::State { state, .. } = self.positions.get(top.back) else { unreachable!("the stack is a parser's") };
        let ir = self.ir.clone();
        let parser = ir.parser(rule).expect("the rule is a parser's");
        let mode = parser.mode(state, class);
        let never_ends = shallow.is_some_and(|known| !known.may_end && known.callers.is_empty());
        let end = if never_ends { Moves::default() } else { self.at_end(rule, parser, stack, budget)? };
        let in_brackets = parser.indenter().is_some() && self.instances.layout(self.stacks.param(stack)).depth > 0;
        let (mut possible, mut terminals) = match shallow {
            Some(known) => (known.possible.clone(), known.open.clone()),
            None => {
                let all = self.mode_of(rule, parser, mode);
                (all.ignored.clone(), all.read.clone())
            }
        };
        if let Some(indenter) = parser.indenter()
            && in_brackets
            && terminals.contains(indenter.newline)
        {
            let newline = Numbers::of([indenter.newline]);
            terminals = terminals.without(&newline);
            possible.extend(&newline);
        }
        let open = self.read_any((rule, parser), stack, terminals, &mut possible, budget)?;
        let lexemes = self.lexemes(rule, parser, mode, possible.clone(), budget)?;
        let unsure = self.lexemes(rule, parser, mode, open.clone(), budget)?;
        let (callers, may_end) = (end.callers, end.cut_off);
        self.parsers.words += possible.words() + open.words();
        let between = Arc::new(Between { lexemes, unsure, possible, open, callers, may_end });
        self.parsers.between.insert((stack, class), between.clone());
        Ok(between)
    }

    /// Any lexeme of these terminals, as the lexer takes them in a mode.
    fn lexemes(
        &mut self,
        rule: RuleId,
        parser: &Parser,
        mode: u32,
        terminals: Numbers,
        budget: &mut Budget,
    ) -> Result<Id> {
        if terminals.is_empty() {
            return Ok(EMPTY);
        }
        let key = (rule, mode, terminals);
        if let Some(&known) = self.parsers.lexemes.get(&key) {
            return Ok(known);
        }
        let mut all = Vec::new();
        for &lexeme in &parser.modes()[mode as usize] {
            if key.2.contains(lexeme.terminal) {
                all.push(self.lexeme(rule, lexeme, budget)?);
            }
        }
        let any = self.arena.alt_within(&all, budget)?;
        self.parsers.words += key.2.words();
        self.parsers.lexemes.insert(key, any);
        Ok(any)
    }

    /// A lexeme that ends in the tag of its terminal.
    pub(super) fn lexeme(&mut self, rule: RuleId, lexeme: Lexeme, budget: &mut Budget) -> Result<Id> {
        if let Some(&known) = self.parsers.lexeme.get(&(rule, lexeme)) {
            return Ok(known);
        }
        let Lexeme { terminal, text, last } = lexeme;
        let x = self.lexeme_text(text, budget)?;
        let position = self.positions.intern(Pos::Token { rule, terminal, last });
        let tag = self.accept(position);
        let x = self.arena.concat_within(x, tag, budget)?;
        let mut x = self.arena.lexeme(x);
        if !self.arena.alive(x, budget)? {
            x = EMPTY;
        }
        self.parsers.lexeme.insert((rule, lexeme), x);
        Ok(x)
    }

    /// The terminals that the lexer takes in a mode.
    fn mode_of(&mut self, rule: RuleId, parser: &Parser, mode: u32) -> Arc<Mode> {
        if let Some(known) = self.parsers.modes.get(&(rule, mode)) {
            return known.clone();
        }
        let terminals = parser.modes()[mode as usize].iter().map(|lexeme| lexeme.terminal);
        let (ignored, read): (Vec<u32>, Vec<u32>) = terminals.partition(|&terminal| parser.is_ignored(terminal));
        let made = Arc::new(Mode { read: Numbers::of(read), ignored: Numbers::of(ignored) });
        self.parsers.words += made.read.words() + made.ignored.words();
        self.parsers.modes.insert((rule, mode), made.clone());
        made
    }
}
