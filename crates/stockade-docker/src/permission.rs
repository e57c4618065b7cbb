//! The kernel's rule of permission bits. Pure.

/// Whether a mode grants all of these bits (read 4, write 2, search 1) to a
/// user without capabilities. The kernel looks at one class only, the first
/// that fits, for root as well (inode(7)).
pub(crate) fn granted(mode: u32, is_owner: bool, is_member: bool, wanted: u32) -> bool {
    let class = match () {
        () if is_owner => 6,
        () if is_member => 3,
        () => 0,
    };
    (mode >> class) & wanted == wanted
}
