//! Who a program of the image runs as, by docker's own rules.
//!
//! They are those of `GetExecUser` in `github.com/moby/sys/user`: a number is
//! always an id, the first match wins, an id without an entry is taken as it
//! is with group 0, and a name without an entry is an error. One difference:
//! a line whose ids are no numbers is passed over, where docker reads it as
//! id 0. Nobody becomes root by a misspelt line.

use stockade_wire::message::UserFacts;

use super::file::Root;

/// Docker's own bound for ids.
const LARGEST_ID: u32 = i32::MAX as u32;

/// Bounds on what of a name or a path reaches the host, and on groups.
const LONGEST_NAME: usize = 256;
const LONGEST_PATH: usize = 4096;
const MOST_GROUPS: usize = 1024;

/// The user that `spec` means: empty, or `user` or `user:group`, each a name
/// or a number.
///
/// # Errors
///
/// A sentence on why it means nobody.
pub(super) fn resolve(root: &Root, spec: &[u8]) -> Result<UserFacts, String> {
    let passwd = root.read("/etc/passwd");
    let group = root.read("/etc/group");
    find(spec, passwd, group)
}

fn find(
    spec: &[u8],
    passwd: Result<Option<Vec<u8>>, String>,
    group: Result<Option<Vec<u8>>, String>,
) -> Result<UserFacts, String> {
    let mut parts = spec.split(|byte| *byte == b':');
    let user = Asked::read(parts.next().unwrap_or_default())?;
    let asked_group = Asked::read(parts.next().unwrap_or_default())?;
    if parts.next().is_some() {
        return Err(format!(
            "the user {:?} has more than one colon",
            shown(spec)
        ));
    }
    let passwd = passwd?.unwrap_or_default();
    let matching = |account: &Account<'_>| match user {
        Asked::Nothing => account.uid == 0,
        Asked::Id(id) => account.uid == id,
        Asked::Name(name) => account.name == name,
    };
    let account = lines(&passwd).filter_map(Account::read).find(matching);
    let (uid, mut gid) = match (&account, user) {
        (Some(account), _) => (account.uid, account.gid),
        (None, Asked::Nothing) => (0, 0),
        (None, Asked::Id(id)) => (id, 0),
        (None, Asked::Name(name)) => {
            return Err(format!(
                "the image's /etc/passwd has no user {:?}",
                shown(name)
            ));
        }
    };
    let mut groups = Vec::new();
    if !matches!(asked_group, Asked::Nothing) {
        gid = explicit_group(asked_group, &group?.unwrap_or_default())?;
    } else if let Some(account) = &account {
        groups = groups_of(account.name, &group?.unwrap_or_default());
    }
    Ok(UserFacts {
        uid,
        gid,
        groups,
        name: account
            .as_ref()
            .filter(|account| account.name.len() <= LONGEST_NAME)
            .map(|account| account.name.into()),
        home: account
            .filter(|account| !account.home.is_empty() && account.home.len() <= LONGEST_PATH)
            .map(|account| account.home.into()),
    })
}

/// A user or a group as it was asked for.
#[derive(Debug, Clone, Copy)]
enum Asked<'a> {
    Nothing,
    Id(u32),
    Name(&'a [u8]),
}

/// A line of `/etc/passwd`.
struct Account<'a> {
    name: &'a [u8],
    uid: u32,
    gid: u32,
    home: &'a [u8],
}

/// A line of `/etc/group`.
struct Group<'a> {
    name: &'a [u8],
    gid: u32,
    members: &'a [u8],
}

impl<'a> Asked<'a> {
    fn read(text: &'a [u8]) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::Nothing);
        }
        if !text.iter().all(u8::is_ascii_digit) {
            return Ok(Self::Name(text));
        }
        match id(text) {
            Some(id) => Ok(Self::Id(id)),
            None => Err(format!(
                "the id {} is larger than {LARGEST_ID}",
                shown(text)
            )),
        }
    }
}

impl<'a> Account<'a> {
    fn read(line: &'a [u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b':');
        let name = fields.next()?;
        let uid = id(fields.nth(1)?)?;
        let gid = id(fields.next()?)?;
        let home = fields.nth(1).unwrap_or_default();
        (!name.is_empty()).then_some(Self {
            name,
            uid,
            gid,
            home,
        })
    }
}

impl<'a> Group<'a> {
    fn read(line: &'a [u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b':');
        let name = fields.next()?;
        let gid = id(fields.nth(1)?)?;
        let members = fields.next().unwrap_or_default();
        (!name.is_empty()).then_some(Self { name, gid, members })
    }
}

fn explicit_group(asked: Asked<'_>, file: &[u8]) -> Result<u32, String> {
    match asked {
        Asked::Nothing => Ok(0),
        Asked::Id(id) => Ok(id),
        Asked::Name(name) => lines(file)
            .filter_map(Group::read)
            .find(|group| group.name == name)
            .map(|group| group.gid)
            .ok_or_else(|| format!("the image's /etc/group has no group {:?}", shown(name))),
    }
}

fn groups_of(user: &[u8], file: &[u8]) -> Vec<u32> {
    lines(file)
        .filter_map(Group::read)
        .filter(|group| {
            group
                .members
                .split(|byte| *byte == b',')
                .any(|member| member == user)
        })
        .map(|group| group.gid)
        .take(MOST_GROUPS)
        .collect()
}

fn lines(file: &[u8]) -> impl Iterator<Item = &[u8]> {
    file.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii)
}

fn id(text: &[u8]) -> Option<u32> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let id: u32 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (id <= LARGEST_ID).then_some(id)
}

/// A name of the image's choice, short enough for a message.
fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text.get(..LONGEST_NAME).unwrap_or(text)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "\
root:x:0:0:root:/root:/bin/sh
app:x:1000:1001:An App:/home/app:/bin/sh
app:x:7:7::/second:/bin/sh
1000:x:5:5::/five:/bin/sh
bare:x:9:9
broken:x:zero:0::/:/bin/sh
huge:x:4294967295:0::/:/bin/sh
:x:3:3::/:/bin/sh
";
    const GROUP: &str = "\
root:x:0:
app:x:1001:
wheel:x:10:root,app
audio:x:29:app
apples:x:30:apple
";

    fn resolve(spec: &str) -> Result<UserFacts, String> {
        let file = |text: &str| Ok(Some(text.as_bytes().to_vec()));
        find(spec.as_bytes(), file(PASSWD), file(GROUP))
    }

    fn ids(spec: &str) -> (u32, u32) {
        let user = resolve(spec).unwrap();
        (user.uid, user.gid)
    }

    #[test]
    fn users_and_groups_are_found_by_name_and_number() {
        for (spec, expected) in [
            ("", (0, 0)),
            ("root", (0, 0)),
            ("app", (1000, 1001)),
            ("app:wheel", (1000, 10)),
            ("app:0", (1000, 0)),
            ("1000", (1000, 1001)),
            ("1000:29", (1000, 29)),
            ("1000:4242", (1000, 4242)),
            ("12345", (12345, 0)),
            ("12345:12345", (12345, 12345)),
            ("12345:audio", (12345, 29)),
            (":audio", (0, 29)),
            ("app:", (1000, 1001)),
            ("bare", (9, 9)),
        ] {
            assert_eq!(ids(spec), expected, "{spec:?}");
        }
    }

    #[test]
    fn who_cannot_be_found_is_an_error_that_names_them() {
        for (spec, part) in [
            ("nobody", "no user \"nobody\""),
            ("app:nogroup", "no group \"nogroup\""),
            ("broken", "no user \"broken\""),
            ("huge", "no user \"huge\""),
            ("a:b:c", "more than one colon"),
            ("4294967296", "larger than"),
            ("2147483648", "larger than"),
            ("-1", "no user \"-1\""),
            ("+5", "no user \"+5\""),
        ] {
            let error = resolve(spec).unwrap_err();
            assert!(error.contains(part), "{spec:?}: {error}");
        }
    }

    #[test]
    fn home_name_and_groups_come_from_the_entry() {
        let user = resolve("app").unwrap();
        assert_eq!(user.home, Some("/home/app".into()));
        assert_eq!(user.name, Some("app".into()));
        assert_eq!(user.groups, [10, 29]);
        let user = resolve("12345").unwrap();
        assert_eq!((user.home, user.name), (None, None));
        assert_eq!(resolve("bare").unwrap().home, None);
        // As docker does: an explicit group stands alone.
        assert!(resolve("app:audio").unwrap().groups.is_empty());
    }

    #[test]
    fn without_files_numbers_still_work_and_names_do_not() {
        assert_eq!(find(b"5:6", Ok(None), Ok(None)).map(|user| user.gid), Ok(6));
        assert_eq!(find(b"", Ok(None), Ok(None)).map(|user| user.uid), Ok(0));
        assert!(find(b"app", Ok(None), Ok(None)).is_err());
    }

    #[test]
    fn a_file_that_cannot_be_trusted_is_an_error_and_not_an_empty_one() {
        let error = "/etc/passwd is no ordinary file".to_owned();
        let found = find(b"5", Err(error.clone()), Ok(None));
        assert_eq!(found, Err(error));
    }

    #[test]
    fn garbage_never_panics() {
        let garbage: Vec<u8> = (0..=255).cycle().take(5000).collect();
        for spec in [&garbage[..], b"", b"app", b":::::"] {
            let file = || Ok(Some(garbage.clone()));
            let _ = find(spec, file(), file());
        }
    }
}
