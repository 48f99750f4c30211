//! Parser of the loader's cache `/etc/ld.so.cache`, the host's index of libraries by name. Reads
//! only glibc's newer format, and of it only entries for 64-bit x86 and ARM (glibc,
//! sysdeps/generic/dl-cache.h).

/// Magic and version of the newer format.
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";

/// Magic of the older format. The newer one may follow it in the same file.
const OLD: &[u8] = b"ld.so-1.7.0";

/// Sizes in bytes of header and entry, in the older format and in the newer one.
const OLD_HEAD: usize = 16;
const OLD_ENTRY: usize = 12;
const HEAD: usize = 48;
const ENTRY: usize = 24;

/// Alignment in bytes of the newer format.
const ALIGNED: usize = 8;

/// Flag of a file whose numbers are big-endian.
const BIG_ENDIAN: u8 = 3;

/// Machine part of an entry's flags: x86-64 and AArch64.
const MACHINES: [u32; 2] = [0x0300, 0x0a00];

/// Longest text in bytes that is read.
const LONGEST: usize = 4096;

/// Library name, and the path where the loader finds it.
pub(super) type CacheEntry<'a> = (&'a str, &'a str);

/// Returns the entries for 64-bit machines. Ends at the first entry that is cut off; a file of
/// another format has none.
pub(super) fn cache_entries(bytes: &[u8]) -> impl Iterator<Item = CacheEntry<'_>> {
    let table =
        find_new_table(bytes).filter(|table| table.get(28).is_some_and(|f| f & 3 != BIG_ENDIAN));
    let count = table.and_then(|table| read_number(table, 20)).unwrap_or(0);
    (0..count)
        .map_while(move |n| read_cache_entry(table?, n))
        .flatten()
}

/// Returns the newer format's part of the file.
fn find_new_table(bytes: &[u8]) -> Option<&[u8]> {
    let start = match bytes.starts_with(OLD) {
        false => 0,
        true => {
            let entries = read_number(bytes, 12)?.checked_mul(OLD_ENTRY)?;
            entries.checked_add(OLD_HEAD)?.next_multiple_of(ALIGNED)
        }
    };
    bytes.get(start..).filter(|table| table.starts_with(MAGIC))
}

/// Returns entry number `n`; `None` behind the end, `Some(None)` for an entry of another machine.
fn read_cache_entry(table: &[u8], n: usize) -> Option<Option<CacheEntry<'_>>> {
    let at = n.checked_mul(ENTRY)?.checked_add(HEAD)?;
    let entry = table.get(at..at.checked_add(ENTRY)?)?;
    let flags = u32::try_from(read_number(entry, 0)?).ok()?;
    if !MACHINES.contains(&(flags & 0xff00)) {
        return Some(None);
    }
    let text = |at| string(table, read_number(entry, at)?);
    Some(text(4).zip(text(8)))
}

/// Returns the text at an offset, up to its NUL byte.
fn string(table: &[u8], at: usize) -> Option<&str> {
    let rest = table.get(at..)?;
    let rest = rest.get(..LONGEST.min(rest.len()))?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&rest[..end]).ok()
}

/// Returns the 32-bit number at an offset.
fn read_number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    usize::try_from(u32::from_le_bytes(bytes.try_into().ok()?)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Makes a cache with these entries, as `ldconfig` writes it.
    fn cache(entries: &[(u32, &str, &str)]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let mut strings = Vec::new();
        let start = HEAD + ENTRY * entries.len();
        let mut table = Vec::new();
        for (flags, key, path) in entries {
            let mut place = |text: &str| {
                let at = u32::try_from(start + strings.len()).unwrap();
                strings.extend_from_slice(text.as_bytes());
                strings.push(0);
                at
            };
            let (key, path) = (place(key), place(path));
            for word in [*flags, key, path, 0, 0, 0] {
                table.extend(word.to_le_bytes());
            }
        }
        bytes.extend(u32::try_from(entries.len()).unwrap().to_le_bytes());
        bytes.extend(u32::try_from(strings.len()).unwrap().to_le_bytes());
        bytes.extend([2, 0, 0, 0]);
        bytes.resize(HEAD, 0);
        [bytes, table, strings].concat()
    }

    const ENTRIES: [(u32, &str, &str); 3] = [
        (0x0303, "libcuda.so.1", "/usr/lib64/libcuda.so.1"),
        (0x0003, "libcuda.so.1", "/usr/lib/libcuda.so.1"),
        (0x0a03, "libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6"),
    ];

    #[test]
    fn lists_the_entries_of_64_bit_machines() {
        let bytes = cache(&ENTRIES);
        let expected = [
            ("libcuda.so.1", "/usr/lib64/libcuda.so.1"),
            ("libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6"),
        ];
        assert_eq!(cache_entries(&bytes).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn finds_the_newer_form_behind_the_older_one() {
        let mut old = OLD.to_vec();
        old.push(0);
        old.extend(3_u32.to_le_bytes());
        old.resize((OLD_HEAD + 3 * OLD_ENTRY).next_multiple_of(ALIGNED), 0);
        let bytes = [old, cache(&ENTRIES)].concat();
        assert_eq!(cache_entries(&bytes).count(), 2);
    }

    #[test]
    fn a_file_that_is_cut_off_or_of_another_order_ends_the_list() {
        let bytes = cache(&ENTRIES);
        for end in 0..bytes.len() {
            assert!(cache_entries(&bytes[..end]).count() <= 2);
        }
        let mut other = bytes.clone();
        other[28] = BIG_ENDIAN;
        assert_eq!(cache_entries(&other).count(), 0);
        assert_eq!(cache_entries(b"ld.so-1.7.0").count(), 0);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_passed_over(
            rubbish in proptest::collection::vec(any::<u8>(), 0..300),
            at in 0..200_usize,
        ) {
            let _ = cache_entries(&rubbish).count();
            let mut bytes = cache(&ENTRIES);
            let places = bytes.iter_mut().skip(20 + at);
            places.zip(&rubbish).for_each(|(to, from)| *to = *from);
            let _ = cache_entries(&bytes).take(100_000).count();
        }
    }
}
