//! Masks that differ from that of another head in few tokens: "any key but these" has the mask of "any key" but for
//! tokens that complete one of these.
//!
//! Both heads are followed over the trie in lockstep. Where they come to the same byte state, they allow the same from
//! there on, so only the tokens before that are patched.

use crate::byteset::ByteSet;
use crate::error::Result;
use crate::mask::maker::{Answer, Attempt, MANY, MaskMaker};
use crate::mask::row::Draft;
use crate::mask::shape::Looping;
use crate::recursion::deep;
use crate::regular::{Arena, EPS, Form, Id};
use crate::stack::{ByteState, DEAD, Head};
use crate::vocabulary::{NodeIndex, Trie};

/// Walks in lockstep that have not ended after so many nodes will take as long as two walks.
const FAR: usize = 8192;

/// Loops that begin after more characters than this have little to do with what is before them.
const NEAR: usize = 2;

/// "Any but these, or these" (any key but the declared ones, or one of those): a loop but for finitely many texts.
struct Exclusion {
    /// "Any": the loop.
    base: Head,
    looping: Looping,
    /// What is excluded and what is added: on other texts the head is like its loop.
    texts: Vec<Id>,
}

impl MaskMaker<'_> {
    /// The loop and the texts of a head that has the form of an exclusion.
    fn exclusion(&mut self, head: Head) -> Result<Option<Exclusion>> {
        let mut texts = self.machine.arena.branches(head.rest).to_vec();
        let arena = &mut self.machine.arena;
        let mut found = None;
        for (i, &x) in texts.iter().enumerate() {
            if let Form::Then(part, tail) = arena.form(x)
                && let Some((all, excluded)) = arena.but_for_few(part)
            {
                found = Some((i, all, excluded, tail));
                break;
            }
        }
        let Some((i, all, excluded, tail)) = found else { return Ok(None) };
        let rest = arena.concat(all, tail);
        let base = Head { rest, ..head };
        let Some(looping) = self.looping(base)? else { return Ok(None) };
        texts.swap_remove(i);
        let (plain, changing) = (looping.plain.and(ByteSet::range(0, 127)), looping.changing);
        let arena = &self.machine.arena;
        if arena.nullable(rest)
            || looping.most.is_some()
            || self.vocab.holders_of_any(changing) > MANY
            || !texts.iter().all(|&x| arena.runs_into(x, plain, changing))
        {
            return Ok(None);
        }
        texts.extend(excluded);
        Ok(Some(Exclusion { base, looping, texts }))
    }

    /// The strategy for exclusions. Plain tokens can be followed by something that is not excluded. So only tokens with
    /// a changing byte may differ from the loop's, and of them only those that spell a whole excluded or added text up
    /// to that byte.
    pub(super) fn by_exclusion(&mut self, head: Head) -> Result<Attempt> {
        let Some(exclusion) = self.exclusion(head)? else { return Ok(Attempt::Declined) };
        let Some(draft) = self.base_mask(exclusion.base, &exclusion.looping)? else { return Ok(Attempt::Deeper) };
        let holders = self.shared.holders(self.vocab, exclusion.looping.changing);
        let trie = &*holders;
        let mut patch = Patch::new(trie, draft);
        let start = self.start(head, exclusion.base)?;
        let mut forks = Forks { trie, ending: exclusion.looping.changing, path: Vec::new(), found: Vec::new() };
        if !exclusion.texts.iter().all(|&x| forks.find(&self.machine.arena, x, 0)) {
            patch.differ(0, start);
            return self.lockstep(patch);
        }
        forks.found.sort_unstable();
        forks.found.dedup();
        for (node, path) in forks.found {
            let mut pair = start;
            for byte in path {
                for state in &mut pair {
                    *state = self.machine.go(*state, byte, self.budget)?;
                }
            }
            if pair.iter().any(|&state| self.machine.is_unsure(state)) {
                return Ok(Attempt::Deeper);
            }
            patch.differ(node, pair);
        }
        self.lockstep(patch)
    }

    /// The strategy for heads from which most bytes lead to a loop, at once or after a few characters: "any key but these"
    /// is "any key" after the first byte that no such key has.
    pub(super) fn by_neighbour(&mut self, head: Head) -> Result<Attempt> {
        self.by_what_follows(head, |maker, base| {
            let few = |l: &Looping| l.most.is_none() && maker.vocab.holders_of_any(l.changing) <= MANY;
            match maker.looping(base)?.filter(few) {
                Some(looping) => Ok(maker.base_mask(base, &looping)?.into()),
                None => Ok(Attempt::Declined),
            }
        })
    }

    /// The same where they lead to a region: behind its first letter, a word that others may follow is in one.
    pub(super) fn by_neighbouring_region(&mut self, head: Head) -> Result<Attempt> {
        self.by_what_follows(head, |maker, base| {
            let region = maker.region(base.rest)?;
            match region.filter(|region| maker.vocab.holders_of_any(region.changing) <= MANY) {
                Some(region) => Ok(maker.region_mask(base, region)?.into()),
                None => Ok(Attempt::Declined),
            }
        })
    }

    /// The mask of a head as a patch of that of one that most bytes lead to, which `mask` makes if it is of its kind.
    fn by_what_follows(&mut self, head: Head, mask: impl Fn(&mut Self, Head) -> Result<Attempt>) -> Result<Attempt> {
        if !self.stays_broad(head)? {
            return Ok(Attempt::Declined);
        }
        let ours = self.machine.closure_state(&[head], self.budget)?;
        let (mut base, mut theirs) = (head, ours);
        for _ in 0..NEAR {
            match self.after_most(base)? {
                Some((after, byte)) if !self.machine.arena.nullable(after.rest) => {
                    base = after;
                    theirs = self.machine.go(theirs, byte, self.budget)?;
                }
                _ => break,
            }
            let draft = match mask(self, base)? {
                Attempt::Made(draft) => draft,
                Attempt::Deeper => return Ok(Attempt::Deeper),
                Attempt::Declined => continue,
            };
            // where ours leads to the same, it has the same form
            let states = match self.machine.arena.nullable(head.rest) || self.machine.is_unsure(theirs) {
                true => self.start(head, base)?,
                false => [ours, theirs],
            };
            let mut patch = Patch::new(&self.vocab.trie, draft);
            patch.differ(0, states);
            return self.lockstep(patch);
        }
        Ok(Attempt::Declined)
    }

    /// The mask of a loop that others are patches of.
    fn base_mask(&mut self, base: Head, looping: &Looping) -> Answer<Draft> {
        if let Some(known) = self.local.bases.get(&base) {
            return Ok(Some(known.clone()));
        }
        let found = self.loop_mask(base, looping)?;
        if let Some(draft) = &found {
            self.local.bases.insert(base, draft.clone());
        }
        Ok(found)
    }

    /// The mask of a head, given that of another one that it is followed in lockstep with.
    pub(super) fn patched(&mut self, head: Head, base: Head, draft: Draft) -> Result<Attempt> {
        let mut patch = Patch::new(&self.vocab.trie, draft);
        patch.differ(0, self.start(head, base)?);
        self.lockstep(patch)
    }

    /// The byte states of a head and its base.
    fn start(&mut self, head: Head, base: Head) -> Result<[ByteState; 2]> {
        let ours = self.machine.closure_state(&[head], self.budget)?;
        Ok([ours, self.machine.closure_state(&[base], self.budget)?])
    }

    /// The mask of a patch.
    fn lockstep(&mut self, mut patch: Patch) -> Result<Attempt> {
        match self.follow_both(&mut patch)? {
            Meeting::Soon => {}
            Meeting::Late if patch.tokens_left() > FAR => return Ok(Attempt::Declined),
            Meeting::Late => patch.take_rest_alone(),
            Meeting::Unsure => return Ok(Attempt::Deeper),
        }
        let Patch { trie, mut draft, alone, .. } = patch;
        draft.drop_cleared(self.vocab.words());
        Ok(self.walk_on(trie, alone, &mut draft)?.map(|()| draft).into())
    }

    /// Follows the pairs of states that are left in a patch. Where the two meet, the rest is the same. Pairs that do not
    /// meet soon are left.
    fn follow_both(&mut self, patch: &mut Patch) -> Result<Meeting> {
        let mut visits = 0;
        while let Some(&(node, [ours, theirs])) = patch.todo.last() {
            if visits > FAR {
                return Ok(Meeting::Late);
            }
            patch.todo.pop();
            let first = self.machine.first(ours, self.budget)?.or(self.machine.first(theirs, self.budget)?);
            let mut rest = patch.trie.child_bytes(node).and(first);
            while let Some(byte) = rest.first() {
                self.budget.spend(1)?;
                let (our_bytes, ours) = self.machine.go_class(ours, byte, self.budget)?;
                let (their_bytes, theirs) = self.machine.go_class(theirs, byte, self.budget)?;
                if self.machine.is_unsure(ours) || self.machine.is_unsure(theirs) {
                    return Ok(Meeting::Unsure);
                }
                let class = our_bytes.and(their_bytes).and(rest);
                rest = rest.minus(class);
                if ours != theirs {
                    for (_, child) in patch.trie.children(node, class) {
                        visits += 1;
                        patch.differ(child, [ours, theirs]);
                    }
                }
            }
        }
        Ok(Meeting::Soon)
    }
}

/// How two byte states meet that are followed over the trie.
enum Meeting {
    /// Or one of them ends.
    Soon,
    /// Or never: some pairs are left.
    Late,
    /// It depends on more of a truncated stack.
    Unsure,
}

/// A mask on its way from that of one byte state, theirs, to that of another one, ours.
struct Patch<'a> {
    trie: &'a Trie,
    draft: Draft,
    /// Nodes that the two lead to different states at.
    todo: Vec<(NodeIndex, [ByteState; 2])>,
    /// Nodes that only ours leads to.
    alone: Vec<(NodeIndex, ByteState)>,
}

impl<'a> Patch<'a> {
    fn new(trie: &'a Trie, draft: Draft) -> Patch<'a> {
        Patch { trie, draft, todo: Vec::new(), alone: Vec::new() }
    }

    /// How many tokens are below the nodes that are left.
    fn tokens_left(&self) -> usize {
        self.todo.iter().map(|&(node, _)| self.trie.tokens_from(node).len()).sum()
    }

    /// Ours alone decides what is below the nodes that are left.
    fn take_rest_alone(&mut self) {
        for (node, [ours, _]) in std::mem::take(&mut self.todo) {
            let below = self.trie.tokens_at(node).len();
            self.draft.clear.extend_from_slice(&self.trie.tokens_from(node)[below..]);
            self.alone.push((node, ours));
        }
    }

    /// The two lead to these states at a node.
    fn differ(&mut self, node: NodeIndex, states: [ByteState; 2]) {
        match states {
            [ours, theirs] if ours == theirs => {}
            [DEAD, _] => self.draft.clear.extend_from_slice(self.trie.tokens_from(node)),
            [ours, DEAD] => {
                self.draft.set.extend_from_slice(self.trie.tokens_at(node));
                if !self.trie.is_leaf(node) {
                    self.alone.push((node, ours));
                }
            }
            _ if self.trie.is_leaf(node) => {}
            _ => self.todo.push((node, states)),
        }
    }
}

/// Where texts leave a loop in a trie: behind the first ending byte of each.
struct Forks<'a> {
    trie: &'a Trie,
    ending: ByteSet,
    path: Vec<u8>,
    /// Nodes, with the bytes that lead to them.
    found: Vec<(NodeIndex, Vec<u8>)>,
}

impl Forks<'_> {
    /// Follows the texts of `x` from a node. Returns `false` if `x` is not of a form to read texts from.
    fn find(&mut self, arena: &Arena, x: Id, node: NodeIndex) -> bool {
        let (set, rest) = match arena.form(x) {
            Form::Byte(set, rest) => (set, Some(rest)),
            Form::Union(n) => return (0..n).all(|i| deep(|| self.find(arena, arena.operand(x, i), node))),
            _ if x == EPS => (self.ending, None),
            _ => return false,
        };
        for (byte, child) in self.trie.children(node, set) {
            self.path.push(byte);
            if self.ending.contains(byte) {
                self.found.push((child, self.path.clone()));
            }
            let follows = match rest {
                Some(rest) if !self.ending.contains(byte) => deep(|| self.find(arena, rest, child)),
                _ => true,
            };
            self.path.pop();
            if !follows {
                return false;
            }
        }
        true
    }
}
