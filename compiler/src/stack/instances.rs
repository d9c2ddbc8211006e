//! Instances of rules: a rule and the value of its parameter. They are made as calls with new values are met.

use rustc_hash::FxHashMap;

use crate::ir::{Guard, Ir, Layout, RuleId, Update, Value};

/// A rule with a value of its parameter. Without one, the number of the instance is that of the rule.
pub(super) type Instance = u32;

/// An interned value of a parameter.
pub(super) type ParamId = u32;

/// The parameter of a rule that is called without one.
pub(super) const UNSET: ParamId = 0;

pub(super) struct Instances {
    list: Vec<(RuleId, ParamId)>,
    ids: FxHashMap<(RuleId, ParamId), Instance>,
    values: Vec<Value>,
    value_ids: FxHashMap<Value, ParamId>,
    /// Whether a rule's body depends on its parameter.
    depends: Vec<bool>,
    /// Words of all values together.
    words: usize,
}

impl Instances {
    pub(super) fn new(ir: &Ir) -> Instances {
        let depends = ir.rules.iter().map(|&body| ir.facts[body as usize].parameter).collect();
        Instances::empty(depends)
    }

    fn empty(depends: Vec<bool>) -> Instances {
        let list: Vec<_> = (0..depends.len() as RuleId).map(|rule| (rule, UNSET)).collect();
        Instances {
            list,
            ids: FxHashMap::default(),
            values: vec![Value::default()],
            value_ids: FxHashMap::from_iter([(Value::default(), UNSET)]),
            depends,
            words: 0,
        }
    }

    /// The instances without parameters alone.
    pub(super) fn emptied(&self) -> Instances {
        Instances::empty(self.depends.clone())
    }

    #[inline]
    pub(super) fn rule(&self, instance: Instance) -> RuleId {
        self.list[instance as usize].0
    }

    #[inline]
    pub(super) fn param(&self, instance: Instance) -> ParamId {
        self.list[instance as usize].1
    }

    pub(super) fn of(&mut self, rule: RuleId, param: ParamId) -> Instance {
        if param == UNSET || !self.depends[rule as usize] {
            return rule;
        }
        let next = self.list.len() as Instance;
        let id = *self.ids.entry((rule, param)).or_insert(next);
        if id == next {
            self.list.push((rule, param));
        }
        id
    }

    pub(super) fn holds(&self, param: ParamId, guard: &Guard) -> bool {
        self.values[param as usize].holds(guard)
    }

    /// The layout that a parameter says.
    pub(super) fn layout(&self, param: ParamId) -> Layout {
        self.values[param as usize].layout()
    }

    /// The parameter that says a layout.
    pub(super) fn of_layout(&mut self, layout: &Layout) -> ParamId {
        self.intern(Value::of_layout(layout))
    }

    pub(super) fn updated(&mut self, param: ParamId, update: &Update) -> ParamId {
        let value = self.values[param as usize].updated(update);
        self.intern(value)
    }

    fn intern(&mut self, value: Value) -> ParamId {
        if let Some(&id) = self.value_ids.get(&value) {
            return id;
        }
        let id = self.values.len() as ParamId;
        self.words += value.words();
        self.values.push(value.clone());
        self.value_ids.insert(value, id);
        id
    }

    /// Copies a parameter of another table into this one.
    pub(super) fn import(&mut self, from: &Instances, param: ParamId) -> ParamId {
        if param == UNSET { UNSET } else { self.intern(from.values[param as usize].clone()) }
    }

    pub(super) fn memory(&self) -> usize {
        self.list.len() * 32 + self.values.len() * 96 + self.words * 16
    }

    /// The words of a parameter's value.
    pub(super) fn size(&self, param: ParamId) -> usize {
        self.values[param as usize].words()
    }
}
