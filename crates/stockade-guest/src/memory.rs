//! All memory of the process, reserved before any guest code runs.
//!
//! Guest code of the same user can lower the limits of PID 1 with `prlimit`;
//! with a lowered `RLIMIT_AS` or `RLIMIT_DATA` an ordinary allocator gets no
//! more from the kernel, and the first allocation after that would end the
//! whole sandbox. The kernel checks those limits when memory is mapped, not
//! when it is first touched, so everything comes out of one region that is
//! part of the program. Pages that were never used cost nothing.

/// How much of the stack is made present at the start. Growing it later would
/// be subject to `RLIMIT_STACK`, and end in a segmentation fault.
const STACK: usize = 256 * 1024;

/// Touches as much stack as will ever be needed.
#[inline(never)]
pub(crate) fn reserve_stack() {
    std::hint::black_box(&mut [1_u8; STACK]);
}

// Unit tests run in threads beside each other, under the standard allocator.
#[cfg(not(test))]
mod region {
    use spinning_top::RawSpinlock;
    use talc::TalcLock;
    use talc::source::Claim;

    /// Size of the region in bytes.
    ///
    /// Nearly twice of what the server holds at most (see [`crate::server`]), so that
    /// fragments never decide, and enough for a supervisor to read the largest
    /// request.
    const SIZE: usize = 64 * 1024 * 1024;

    #[global_allocator]
    static MEMORY: TalcLock<RawSpinlock, Claim> = {
        static mut SPACE: [u8; SIZE] = [0; SIZE];
        #[expect(unsafe_code, reason = "the allocator is given its region once")]
        // SAFETY: nothing else names the region.
        let claim = unsafe { Claim::array(&raw mut SPACE) };
        TalcLock::new(claim)
    };
}
