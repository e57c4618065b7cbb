//! Whose identity every process of a sandbox has.

use std::fmt;

use stockade::Refusal;
use stockade::spec::Hardening;

use crate::image::ImageFacts;

/// The id of `nobody` on Debian, Alpine and Fedora alike, and the id that
/// kernels use for "nobody that exists here".
pub(crate) const NOBODY: u32 = 65534;

/// Numeric, so that nothing of the image decides what it means at run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
    /// The image's name for it, for `USER` and `LOGNAME`.
    pub(crate) name: Option<String>,
    /// The image's home directory for it.
    pub(crate) home: Option<String>,
}

/// `Strict` never runs as root: an image whose user is root runs as nobody.
/// An image whose user cannot be resolved is refused under either profile,
/// since somebody else's identity would be a guess.
pub(crate) fn choose(hardening: Hardening, image: &ImageFacts) -> Result<User, Refusal> {
    let facts = image
        .user
        .as_ref()
        .map_err(|why| Refusal::ImageUserUnresolved {
            user: image.user_name.clone(),
            why: why.clone(),
        })?;
    if hardening == Hardening::Strict && facts.uid == 0 {
        return Ok(User {
            uid: NOBODY,
            gid: NOBODY,
            groups: vec![],
            name: None,
            home: None,
        });
    }
    let text = |text: &stockade_wire::Text| String::from_utf8(text.as_bytes().to_vec()).ok();
    // Root's group would come back through the group list of a careless image.
    let strict = hardening == Hardening::Strict;
    let groups = facts
        .groups
        .iter()
        .copied()
        .filter(|gid| !(strict && *gid == 0))
        .collect();
    let gid = if strict && facts.gid == 0 {
        facts.uid
    } else {
        facts.gid
    };
    Ok(User {
        uid: facts.uid,
        gid,
        groups,
        name: facts.name.as_ref().and_then(text),
        home: facts.home.as_ref().and_then(text),
    })
}

/// As `docker run --user` takes it.
impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.uid, self.gid)
    }
}
