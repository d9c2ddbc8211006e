//! The serialised form of a grammar: versioned, little-endian, independent of the machine and of the process.

use super::{Encoded, Ir, Parts};
use crate::error::{Error, Result};

const MAGIC: &[u8; 8] = b"GRAMSPEC";
/// To be increased whenever the meaning of the bytes changes.
const VERSION: u32 = 4;

impl Ir {
    pub fn to_bytes(&self) -> Vec<u8> {
        let Encoded { ops, rules, blob, kinds, start } = self.encode(0, 0);
        let mut out = Vec::with_capacity(ops.len() * 4 + blob.len() + 64);
        out.extend_from_slice(MAGIC);
        let number = |n: usize, out: &mut Vec<u8>| out.extend_from_slice(&(n as u32).to_le_bytes());
        number(VERSION as usize, &mut out);
        number(start as usize, &mut out);
        number(ops.len(), &mut out);
        ops.iter().for_each(|&n| number(n as usize, &mut out));
        number(rules.len(), &mut out);
        for (i, (rule, name)) in rules.iter().zip(&self.names).enumerate() {
            number(*rule as usize, &mut out);
            number(kinds[i].into(), &mut out);
            number(name.len(), &mut out);
            out.extend_from_slice(name.as_bytes());
        }
        number(blob.len(), &mut out);
        out.extend_from_slice(&blob);
        out
    }

    pub fn from_bytes(data: &[u8]) -> Result<Ir> {
        let mut r = Reader { data, at: 0 };
        if r.take(8)? != MAGIC {
            return Err(Error::Malformed("these bytes are not a serialised grammar".into()));
        }
        let version = r.number()?;
        if version != VERSION {
            return Err(Error::Malformed(format!("grammar of format version {version}; this build reads {VERSION}")));
        }
        let start = r.number()?;
        let count = r.number()? as usize;
        let ops: Vec<u32> = r
            .take(count.saturating_mul(4))?
            .chunks(4)
            .map(|c| u32::from_le_bytes(c.try_into().expect("4 bytes")))
            .collect();
        let (mut rules, mut names, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..r.number()? {
            let body = r.number()?;
            let kind = r.number()?;
            kinds.push(u8::try_from(kind).map_err(|_| Error::Malformed("there is no such kind of rules".into()))?);
            let len = r.number()? as usize;
            let name =
                std::str::from_utf8(r.take(len)?).map_err(|_| Error::Malformed("a rule's name is not UTF-8".into()))?;
            rules.push(body);
            names.push(name.to_owned());
        }
        let len = r.number()? as usize;
        let blob = r.take(len)?;
        Ir::decode(Parts { ops: &ops, rules: &rules, blob, names, kinds: &kinds, start })
    }
}

struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let end = self.at.saturating_add(n);
        let out =
            self.data.get(self.at..end).ok_or_else(|| Error::Malformed("a serialised grammar is cut off".into()))?;
        self.at = end;
        Ok(out)
    }

    fn number(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("4 bytes")))
    }
}
