//! How far a call has come that reads many tokens or bytes: what it may still spend, and what its error says.

use std::fmt::Write;

use super::engine::Engine;
use super::states::StateId;
use crate::error::{Error, Result};

/// Units that each byte of the tokens of a call adds to the call's budget: more than most bytes take in texts of tens
/// of thousands of them.
const PER_BYTE: u64 = 100;

/// Heads of a state whose rules an error names.
const NAMED: usize = 3;

/// How far the call at hand has come.
#[derive(Clone, Copy, Default)]
pub(super) struct Progress {
    pub(super) tokens: usize,
    pub(super) bytes: usize,
    /// The last state that was reached.
    state: Option<StateId>,
}

impl Engine {
    /// Makes a call that begins in a state: all of its budget is left, and little memory is held by what no state needs.
    /// The error of a limit says how far the call had come.
    pub(super) fn call<T>(&mut self, id: StateId, work: impl FnOnce(&mut Engine) -> Result<T>) -> Result<T> {
        self.progress = Progress { state: Some(id), ..Progress::default() };
        self.budget.refill();
        let made = self.make_room().and_then(|()| work(self));
        made.map_err(|error| match error {
            Error::Limit { .. } => Error::At(Box::new(error), self.place()),
            error => error,
        })
    }

    /// Notes that a token was read, and adds to the budget what its text is worth. `state`: the state behind it, if one
    /// was made.
    pub(super) fn passed(&mut self, token: u32, state: Option<StateId>) -> Result<()> {
        let bytes = self.vocab.token(token).len();
        self.progress.tokens += 1;
        self.progress.bytes += bytes;
        self.progress.state = state;
        self.budget.spend(1)?;
        self.budget.add(bytes as u64 * PER_BYTE);
        Ok(())
    }

    /// Where the call at hand is: what it has read, and the rules of the grammar in which the text stands there.
    fn place(&self) -> String {
        let Progress { tokens, bytes, state } = self.progress;
        let rules = state.and_then(|id| self.states.get(id).ok()).map_or_else(Vec::new, |state| {
            let mut rules: Vec<&str> = Vec::new();
            for name in state.kernel.iter().filter_map(|&head| self.machine.rule_name(head)) {
                if !rules.contains(&name) {
                    rules.push(name);
                }
            }
            rules
        });
        let mut place = match (tokens, bytes) {
            (0, 0) => String::new(),
            (0, _) => format!("byte {bytes} of the text"),
            _ => format!("token {tokens} of the call, which begins at byte {bytes} (both counted from 0)"),
        };
        if !rules.is_empty() {
            let more = if rules.len() > NAMED { ", ..." } else { "" };
            let (rules, names) = (&rules[..rules.len().min(NAMED)], if rules.len() > 1 { "rules" } else { "rule" });
            let separator = if place.is_empty() { "the" } else { ", in the" };
            _ = write!(place, "{separator} {names} {}{more}", rules.join(", "));
        }
        place
    }
}
