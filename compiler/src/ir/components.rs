//! Strongly connected components of a graph over rules, by Tarjan's algorithm (1972) without recursion.

use super::RuleId;

/// Components of a graph over rules.
pub struct Components {
    /// Rules in an order in which callees come before their callers (but within a component).
    pub order: Vec<RuleId>,
    /// The component of each rule; callees have lower or equal numbers.
    pub of: Vec<u32>,
    /// Whether the rule can reach itself.
    pub recursive: Vec<bool>,
}

/// The components of the graph in which `edges[r]` lists the callees of rule `r`.
pub fn components(edges: &[Vec<RuleId>]) -> Components {
    const NEW: u32 = u32::MAX;
    let n = edges.len();
    let mut index = vec![NEW; n];
    let mut low = vec![0u32; n];
    let mut on_stack = vec![false; n];
    let mut stack: Vec<RuleId> = Vec::new();
    let mut out = Components { order: Vec::with_capacity(n), of: vec![0; n], recursive: vec![false; n] };
    let mut next = 0;
    let mut count = 0;
    for root in 0..n {
        if index[root] != NEW {
            continue;
        }
        let mut work: Vec<(usize, usize)> = vec![(root, 0)];
        while let Some(&(v, i)) = work.last() {
            if i == 0 {
                index[v] = next;
                low[v] = next;
                next += 1;
                stack.push(v as RuleId);
                on_stack[v] = true;
            }
            if let Some(&w) = edges[v].get(i) {
                work.last_mut().expect("not empty").1 += 1;
                let w = w as usize;
                if index[w] == NEW {
                    work.push((w, 0));
                } else if on_stack[w] {
                    low[v] = low[v].min(index[w]);
                }
                continue;
            }
            work.pop();
            if let Some(&(parent, _)) = work.last() {
                low[parent] = low[parent].min(low[v]);
            }
            if low[v] == index[v] {
                let from = stack.iter().rposition(|&r| r as usize == v).expect("the root is on the stack");
                let alone = stack.len() - from == 1;
                for r in stack.split_off(from) {
                    on_stack[r as usize] = false;
                    out.of[r as usize] = count;
                    out.recursive[r as usize] = !alone || edges[v].contains(&r);
                    out.order.push(r);
                }
                count += 1;
            }
        }
    }
    out
}
