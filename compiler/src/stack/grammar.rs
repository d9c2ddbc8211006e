//! The analysis of a grammar on a vocabulary: which expressions are productive, which are nullable, and which rules are
//! left-recursive.
//!
//! A productive expression has a text that the vocabulary can spell. Both properties are least fixpoints over
//! expressions and rules, computed in linear time with a worklist (as Dowling and Gallier 1984 do for Horn clauses).

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::ir::{Components, Facts, Ir, Node, NodeId, RuleId, components};
use crate::regular::{Arena, EMPTY};

/// Facts about a grammar's expressions and rules, given the bytes that the vocabulary can spell.
pub struct Analysis {
    pub productive: Vec<bool>,
    pub nullable: Vec<bool>,
    /// Expressions that depend on a parameter, of their own rule or of one that they call; empty if none do. For these,
    /// `productive` and `nullable` say what holds for at least one value of the parameter.
    parametric: Vec<bool>,
    /// The order in which expressions were found to be productive, whatever the parameters; empty if there are none.
    rank: Vec<u32>,
    /// Strongly connected components of the left-corner graph: which rule can begin with which.
    corners: Components,
    /// The rules of each left-recursive component.
    members: Vec<Vec<RuleId>>,
    /// The rules whose texts are whole texts.
    whole: Vec<RuleId>,
}

impl Analysis {
    /// Fails with `Error::InnerBytes` or `Error::Unsupported` if the vocabulary cannot spell all of the grammar's texts
    /// whatever stands around them, and with `Error::Unsupported` if a rule that depends on a parameter can call itself
    /// before any text.
    pub fn new(
        ir: &Ir,
        arena: &mut Arena,
        lowered: &mut crate::regular::Lowered,
        budget: &mut Budget,
    ) -> Result<Analysis> {
        let bases = Bases::find(ir, arena, lowered, budget)?;
        if let Some(error) = arena.refusal() {
            return Err(error);
        }
        let uses = Uses::find(ir);
        let (productive, found) = least_fixpoint(ir, &uses, &bases.productive);
        let (nullable, _) = least_fixpoint(ir, &uses, &bases.nullable);
        let edges: Vec<Vec<RuleId>> =
            (0..ir.rules.len()).map(|r| left_calls(ir, ir.body(r as RuleId), &nullable, &productive)).collect();
        let corners = components(&edges);
        let parametric = find_parametric(ir, &uses);
        let mut rank = Vec::new();
        if !parametric.is_empty() {
            rank = vec![NodeId::MAX; ir.nodes.len()];
            found.iter().enumerate().for_each(|(i, &id)| rank[id as usize] = i as u32);
        }
        for (r, name) in ir.names.iter().enumerate() {
            if corners.recursive[r] && ir.facts[ir.body(r as RuleId) as usize].parameter {
                return Err(Error::Unsupported(format!(
                    "the rule {name:?}, which depends on a parameter, may call itself before any text"
                )));
            }
        }
        let mut members = vec![Vec::new(); ir.rules.len()];
        for &rule in &corners.order {
            if corners.recursive[rule as usize] {
                members[corners.of[rule as usize] as usize].push(rule);
            }
        }
        Ok(Analysis { productive, nullable, parametric, rank, corners, members, whole: rules_of_whole_texts(ir) })
    }

    /// Whether each text of a rule is a whole text: nothing follows its end.
    pub fn ends_texts(&self, rule: RuleId) -> bool {
        self.whole.contains(&rule)
    }

    #[inline]
    pub fn parametric(&self, node: NodeId) -> bool {
        !self.parametric.is_empty() && self.parametric[node as usize]
    }

    /// A number that is lower for the expressions by which this one was found to be productive: a search that follows
    /// lower ranks meets no recursion.
    pub fn rank(&self, node: NodeId) -> u32 {
        self.rank[node as usize]
    }

    /// Whether the rule can begin with itself. Rules that depend on a parameter never can.
    pub fn left_recursive(&self, rule: RuleId) -> bool {
        self.corners.recursive[rule as usize]
    }

    /// Number of the rule's component; what a rule can begin with has the same number or a lower one.
    pub fn component(&self, rule: RuleId) -> u32 {
        self.corners.of[rule as usize]
    }

    /// The rules of a left-recursive rule's component.
    pub fn members(&self, rule: RuleId) -> &[RuleId] {
        &self.members[self.component(rule) as usize]
    }
}

/// The start rule, the one that it is a call of, and so on, as long as nothing else calls them.
fn rules_of_whole_texts(ir: &Ir) -> Vec<RuleId> {
    let mut uses = vec![0u32; ir.nodes.len()];
    ir.nodes.iter().for_each(|node| node.operands(|operand| uses[operand as usize] += 1));
    ir.rules.iter().for_each(|&body| uses[body as usize] += 1);
    let mut called = vec![0u32; ir.rules.len()];
    for (node, &uses) in ir.nodes.iter().zip(&uses) {
        if let Node::Call(rule) | Node::CallWith(rule, _) = node {
            called[*rule as usize] += uses;
        }
    }
    let mut rules = Vec::new();
    let mut rule = ir.start();
    while called[rule as usize] == u32::from(!rules.is_empty()) {
        rules.push(rule);
        let Node::Call(next) = ir.nodes[ir.body(rule) as usize] else { break };
        rule = next;
    }
    rules
}

/// Where the fixpoints start: the answers of expressions that do not depend on rules.
struct Bases {
    productive: Vec<Option<bool>>,
    nullable: Vec<Option<bool>>,
}

impl Bases {
    fn find(ir: &Ir, arena: &mut Arena, lowered: &mut crate::regular::Lowered, budget: &mut Budget) -> Result<Bases> {
        let n = ir.nodes.len();
        let mut out = Bases { productive: vec![None; n], nullable: vec![None; n] };
        // only what can be reached outside Boolean operators and assertions is asked for
        let mut needed = vec![false; n];
        let mut todo: Vec<NodeId> = ir.rules.clone();
        let mut searched: Vec<NodeId> = Vec::new();
        let mut lexemes: Vec<NodeId> = Vec::new();
        while let Some(id) = todo.pop() {
            if std::mem::replace(&mut needed[id as usize], true) {
                continue;
            }
            let node = &ir.nodes[id as usize];
            let facts = ir.facts[id as usize];
            if let Node::Lexeme(_) = node {
                lexemes.push(id);
                continue;
            }
            let leaf = match node {
                Node::Both(_) | Node::Complement(_) => true,
                Node::Terminal(x) => ir.facts[*x as usize].looks,
                _ => facts.regular && facts.looks,
            };
            if leaf {
                searched.push(id);
            } else {
                node.operands(|o| todo.push(o));
            }
        }
        for (i, node) in ir.nodes.iter().enumerate() {
            if !needed[i] {
                continue;
            }
            if matches!(node, Node::Literal(_) | Node::Bytes(_) | Node::Words(_)) {
                arena.note_content(ir, i as NodeId);
            }
            let (productive, nullable) = match node {
                Node::Nothing => (false, false),
                Node::Literal(text) => (arena.spells(text), text.is_empty()),
                Node::Bytes(set) => (arena.bytes(*set) != EMPTY, false),
                Node::Codepoints(_) => (arena.lower(ir, i as NodeId, lowered, budget)? != EMPTY, false),
                Node::Words(texts) => {
                    (texts.iter().filter(|t| arena.spells(t)).count() > 0, texts.first().is_some_and(|t| t.is_empty()))
                }
                Node::Lexemes(_) => {
                    out.nullable[i] = Some(false);
                    continue;
                }
                // whether it takes any text is found out from its start state
                Node::Parser(parser) => (true, parser.takes_nothing()),
                _ => continue,
            };
            out.productive[i] = Some(productive);
            out.nullable[i] = Some(nullable);
        }
        for id in lexemes {
            let mut within = || {
                let x = arena.lower(ir, id, lowered, budget)?;
                let end = arena.accept(0, false);
                let x = arena.concat_within(x, end, budget)?;
                let x = arena.lexeme(x);
                if arena.nullable(x) {
                    return Err(Error::Unsupported(format!(
                        "node {id} gives `lexeme` an expression that may be empty"
                    )));
                }
                arena.alive(x, budget)
            };
            out.productive[id as usize] = Some(within().map_err(|error| placed(ir, id, error))?);
            out.nullable[id as usize] = Some(false);
        }
        for id in searched {
            let mut within = || {
                let x = arena.lower(ir, id, lowered, budget)?;
                let x = arena.unit(x);
                Ok((arena.nullable(x), arena.alive(x, budget)?))
            };
            let (nullable, productive) = within().map_err(|error| placed(ir, id, error))?;
            out.nullable[id as usize] = Some(nullable);
            out.productive[id as usize] = Some(productive);
        }
        Ok(out)
    }
}

/// The error of a limit with the rule of the grammar whose expression was at work when it was hit.
fn placed(ir: &Ir, node: NodeId, error: Error) -> Error {
    if !matches!(error, Error::Limit { .. }) {
        return error;
    }
    let mut seen = vec![false; ir.nodes.len()];
    for (rule, &body) in ir.rules.iter().enumerate() {
        let mut todo = vec![body];
        while let Some(id) = todo.pop() {
            if id == node {
                return Error::At(Box::new(error), format!("the rule {}", ir.names[rule]));
            }
            if !std::mem::replace(&mut seen[id as usize], true) {
                ir.nodes[id as usize].operands(|operand| todo.push(operand));
            }
        }
    }
    error
}

/// Which expressions each expression is a part of: those that have it as an operand, and the calls of a rule whose body
/// it is.
struct Uses {
    /// `users[start[i]..start[i + 1]]` are the expressions that expression `i` is a part of.
    start: Vec<u32>,
    users: Vec<NodeId>,
}

impl Uses {
    fn find(ir: &Ir) -> Uses {
        let mut start = vec![0u32; ir.nodes.len() + 1];
        ir.nodes.iter().for_each(|node| parts(ir, node, |part| start[part as usize + 1] += 1));
        for i in 0..ir.nodes.len() {
            start[i + 1] += start[i];
        }
        let mut users = vec![0 as NodeId; start[ir.nodes.len()] as usize];
        let mut fill = start.clone();
        for (node, id) in ir.nodes.iter().zip(0..) {
            parts(ir, node, |part| {
                let at = &mut fill[part as usize];
                users[*at as usize] = id;
                *at += 1;
            });
        }
        Uses { start, users }
    }

    fn of(&self, id: NodeId) -> &[NodeId] {
        &self.users[self.start[id as usize] as usize..self.start[id as usize + 1] as usize]
    }
}

/// Calls `f` for the operands of an expression, and for the body of the rule that it calls.
fn parts(ir: &Ir, node: &Node, mut f: impl FnMut(NodeId)) {
    match node {
        Node::Call(rule) | Node::CallWith(rule, _) => f(ir.body(*rule)),
        _ => node.operands(f),
    }
}

/// The least fixpoint of "all parts of a sequence, any part of a union" over the given bases: productivity and
/// nullability alike. Takes linear time, as every expression is settled once and then tells those that it is part of.
///
/// Returns whether the property holds, by expression, and the expressions for which it does in the order in which that
/// was found: what each one rests on comes before it.
fn least_fixpoint(ir: &Ir, uses: &Uses, base: &[Option<bool>]) -> (Vec<bool>, Vec<NodeId>) {
    let mut missing = vec![0u32; ir.nodes.len()];
    let mut holds = vec![false; ir.nodes.len()];
    let mut found: Vec<NodeId> = Vec::with_capacity(ir.nodes.len());
    for (i, node) in ir.nodes.iter().enumerate() {
        let at_once = match (base[i], node) {
            (Some(known), _) => known,
            (None, Node::Seq(os)) => {
                missing[i] = os.len() as u32;
                os.is_empty()
            }
            (None, Node::Repeat(_, least, _)) => *least == 0,
            (None, Node::When(_)) => true,
            _ => false,
        };
        if at_once {
            holds[i] = true;
            found.push(i as NodeId);
        }
    }
    let mut next = 0;
    while let Some(&id) = found.get(next) {
        next += 1;
        for &user in uses.of(id) {
            let at = user as usize;
            if holds[at] || base[at].is_some() {
                continue;
            }
            let now = match &ir.nodes[at] {
                Node::Text(os) => os[0] == id,
                Node::Seq(_) => {
                    missing[at] -= 1;
                    missing[at] == 0
                }
                Node::Ahead(_) | Node::Behind(_) | Node::Both(_) | Node::Complement(_) => false,
                _ => true,
            };
            if now {
                holds[at] = true;
                found.push(user);
            }
        }
    }
    (holds, found)
}

/// The expressions in which a parameter matters, at whatever depth; empty if there are none.
fn find_parametric(ir: &Ir, uses: &Uses) -> Vec<bool> {
    let own = |(node, facts): (&Node, &Facts)| facts.parameter || matches!(node, Node::CallWith(..));
    let mut found: Vec<bool> = ir.nodes.iter().zip(&ir.facts).map(own).collect();
    if !found.contains(&true) {
        return Vec::new();
    }
    let mut todo: Vec<NodeId> = (0..found.len() as NodeId).filter(|&i| found[i as usize]).collect();
    while let Some(id) = todo.pop() {
        for &user in uses.of(id) {
            if !std::mem::replace(&mut found[user as usize], true) {
                todo.push(user);
            }
        }
    }
    found
}

/// The rules that a text of this expression can begin with.
fn left_calls(ir: &Ir, body: NodeId, nullable: &[bool], productive: &[bool]) -> Vec<RuleId> {
    let mut out = Vec::new();
    let mut seen = rustc_hash::FxHashSet::default();
    let mut todo = vec![body];
    while let Some(id) = todo.pop() {
        if ir.facts[id as usize].regular || !productive[id as usize] || !seen.insert(id) {
            continue;
        }
        match &ir.nodes[id as usize] {
            Node::Call(rule) | Node::CallWith(rule, _) => out.push(*rule),
            Node::Seq(os) => {
                for &o in os {
                    todo.push(o);
                    if !nullable[o as usize] {
                        break;
                    }
                }
            }
            node => node.operands(|o| todo.push(o)),
        }
    }
    out.sort_unstable();
    out.dedup();
    out
}
