//! The bytes of a scalar while it is written.

use smallvec::SmallVec;

use super::held::Held;
use super::list::List;

/// Bytes that a clone copies, at most.
const CHUNK: usize = 24;

/// A text that grows at its end. Its clones share all but the last bytes, so that the states along a long string do not
/// each hold all of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Text {
    chunks: List<[u8; CHUNK]>,
    /// What follows the chunks; less than a chunk.
    last: SmallVec<[u8; CHUNK]>,
}

impl Text {
    pub(super) fn len(&self) -> usize {
        self.chunks.len() * CHUNK + self.last.len()
    }

    pub(super) fn push(&mut self, byte: u8) {
        self.last.push(byte);
        if let Ok(chunk) = self.last.as_slice().try_into() {
            self.chunks.push(chunk);
            self.last.clear();
        }
    }

    /// Whether `whole` begins with this text.
    pub(super) fn begins(&self, whole: &[u8]) -> bool {
        let Some((chunks, rest)) = whole.split_at_checked(self.chunks.len() * CHUNK) else { return false };
        rest.starts_with(&self.last)
            && self.chunks.iter().zip(chunks.rchunks(CHUNK)).all(|(ours, theirs)| ours == theirs)
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.chunks.len() * CHUNK];
        bytes.rchunks_mut(CHUNK).zip(self.chunks.iter()).for_each(|(to, chunk)| to.copy_from_slice(chunk));
        bytes.extend_from_slice(&self.last);
        bytes
    }

    pub(super) fn count(&self, held: &mut Held) {
        self.chunks.count(held, |_, _| ());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_any_length() {
        let bytes: Vec<u8> = (0..100).collect();
        let mut text = Text::default();
        for n in 0..bytes.len() {
            assert_eq!((text.len(), text.to_vec()), (n, bytes[..n].to_vec()));
            for end in 0..bytes.len() {
                assert_eq!(text.begins(&bytes[..end]), n <= end);
            }
            for i in 0..n {
                let mut other = bytes.clone();
                other[i] += 1;
                assert!(!text.begins(&other));
            }
            text.push(bytes[n]);
        }
        let mut other = Text::default();
        bytes.iter().for_each(|&byte| other.push(byte));
        assert!(text == other && text.clone() == other);
        other.push(0);
        assert!(text != other);
    }

    #[test]
    fn clones_share_their_bytes() {
        let (mut text, mut clones) = (Text::default(), Vec::new());
        for _ in 0..10_000 {
            text.push(b'a');
            clones.push(text.clone());
        }
        let mut held = Held::default();
        clones.iter().for_each(|clone| clone.count(&mut held));
        assert!(held.bytes() < 100_000, "{}", held.bytes());
    }
}
