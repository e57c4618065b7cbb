//! `/proc/self/mountinfo`, see `proc_pid_mountinfo(5)`.

/// One line of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Which directory of the file system is mounted.
    pub(crate) root: Vec<u8>,
    /// Where.
    pub(crate) path: Vec<u8>,
    pub(crate) kind: String,
    pub(crate) read_only: bool,
    /// Options of the file system as a whole.
    pub(crate) options: String,
}

impl Mount {
    /// Size of a tmpfs in bytes.
    pub(crate) fn size(&self) -> Option<u64> {
        if self.kind != "tmpfs" {
            return None;
        }
        let size = self
            .options
            .split(',')
            .find_map(|option| option.strip_prefix("size="))?;
        let (digits, unit) = match size.strip_suffix('k') {
            Some(digits) => (digits, 1024),
            None => (size, 1),
        };
        digits.parse::<u64>().ok()?.checked_mul(unit)
    }
}

/// Reads the whole file. Lines that are not of that form are passed over.
pub(crate) fn parse(mountinfo: &[u8]) -> Vec<Mount> {
    mountinfo
        .split(|byte| *byte == b'\n')
        .filter_map(parse_line)
        .collect()
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let root = unescape(fields.nth(3)?);
    let path = unescape(fields.next()?);
    let mount_options = text(fields.next()?);
    // Optional fields end with a dash of their own.
    fields.find(|field| *field == b"-")?;
    let kind = text(fields.next()?);
    let options = text(fields.nth(1)?);
    let is_read_only = |options: &str| options.split(',').any(|option| option == "ro");
    Some(Mount {
        root,
        path,
        kind,
        read_only: is_read_only(&mount_options) || is_read_only(&options),
        options,
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Space, tab, line feed and backslash are three octal digits after a backslash.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'\\').then(|| after.get(..3)).flatten();
        let code = escaped.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &[u8] =
        br"600 500 0:50 / / ro,relatime master:1 - overlay overlay rw,lowerdir=/x
601 600 0:51 / /work rw,nosuid,nodev - tmpfs tmpfs rw,size=262144k,nr_inodes=65536,mode=700
602 600 254:0 /volumes/r/_data /.stockade ro,relatime - ext4 /dev/vda rw
603 600 0:52 / /a\040b\134c rw - tmpfs tmpfs rw
604 600 0:53 / /sealed rw - ext4 /dev/vdb ro
nonsense
";

    #[test]
    fn places_kinds_sizes_and_protection_are_read() {
        let mounts = parse(MOUNTINFO);
        let short: Vec<_> = mounts
            .iter()
            .map(|mount| {
                let path = String::from_utf8_lossy(&mount.path).into_owned();
                (path, mount.kind.as_str(), mount.read_only, mount.size())
            })
            .collect();
        let expected = [
            ("/", "overlay", true, None),
            ("/work", "tmpfs", false, Some(256 << 20)),
            ("/.stockade", "ext4", true, None),
            (r"/a b\c", "tmpfs", false, None),
            ("/sealed", "ext4", true, None),
        ]
        .map(|(path, kind, read_only, size)| (path.to_owned(), kind, read_only, size));
        assert_eq!(short, expected);
        assert_eq!(mounts[2].root, b"/volumes/r/_data");
    }

    #[test]
    fn a_backslash_that_escapes_nothing_stands_for_itself() {
        assert_eq!(unescape(br"a\9b\04"), br"a\9b\04");
        assert_eq!(unescape(br"\040\011"), b" \t");
    }
}
