//! Whether stacks grow without bound, for those who need all states of a machine.
//!
//! A stack that returns twice to the same position, in rules of one parameter, has a part that can be written again and
//! again: the text between the two calls. So there is no end of such stacks. Where no stack does so, there are finitely
//! many.

use std::sync::Arc;

use super::continuation::{Continuations, Stack};
use super::instances::ParamId;
use super::position::PosId;
use super::step::Machine;
use crate::budget::Budget;
use crate::error::Result;
use crate::ir::{Kinds, RuleId};

/// What has been found out about the stacks of a machine so far.
#[derive(Default)]
pub struct Nesting {
    /// Of each stack, the positions that it returns to, with the parameters of their rules; ascending.
    returns: Vec<Arc<[(PosId, ParamId)]>>,
}

impl Nesting {
    /// A position that some stack returns to twice.
    fn repeated(&mut self, stacks: &Continuations, budget: &mut Budget) -> Result<Option<PosId>> {
        for k in self.returns.len()..stacks.len() {
            let mut all: Vec<(PosId, ParamId)> = Vec::new();
            for f in stacks.frames(k as Stack).iter().filter(|f| !stacks.is_bottom(**f)) {
                let here = (f.back, stacks.param(f.below));
                let below = &self.returns[f.below as usize];
                if below.binary_search(&here).is_ok() {
                    return Ok(Some(f.back));
                }
                all.push(here);
                all.extend_from_slice(below);
            }
            budget.spend(1 + all.len() as u64 / 16)?;
            all.sort_unstable();
            all.dedup();
            self.returns.push(all.into());
        }
        Ok(None)
    }
}

impl Machine {
    /// The name of a rule that some stack met so far is in twice.
    pub fn nested_rule(&self, nesting: &mut Nesting, budget: &mut Budget) -> Result<Option<&str>> {
        let found = nesting.repeated(&self.stacks, budget)?;
        Ok(found.map(|position| self.name_of(self.positions.rule(position))))
    }

    fn name_of(&self, rule: RuleId) -> &str {
        self.ir.names.get(rule as usize).map_or("at the start", String::as_str)
    }

    /// The name of a rule in which values must differ.
    pub fn rule_with_history(&self) -> Option<&str> {
        let marked = self.ir.kinds.iter().position(|&kinds| kinds != Kinds::default())?;
        Some(self.name_of(marked as RuleId))
    }
}
