//! Carries the static guest runtime, so that a user needs no image build.
//!
//! The build script builds `stockade-guest` with a nested cargo (profile
//! `guest`, static, its own target folder) and this crate embeds the result.
//! The runtime for the architecture that this crate is built for is carried;
//! an engine of another one is told apart by [`for_platform`] answering
//! `None`, never served with a wrong binary.
//!
//! | Built for | Carried |
//! |---|---|
//! | Linux on x86-64 or arm64 | the runtime of that architecture |
//! | anything else, and on docs.rs | nothing |
//! | anything, with `STOCKADE_GUEST_BINARY=/path` in the build's environment | that file, for the architecture that its ELF header names |
//!
//! The musl target is used where it is installed (`rustup target add
//! x86_64-unknown-linux-musl`), and static glibc otherwise, for which the
//! distribution's `libc.a` must be there. The guest calls nothing that static
//! glibc cannot do (name services, `dlopen`).

/// A guest runtime that can be put into an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CarriedRuntime {
    /// What it runs on.
    pub platform: Platform,
    /// SHA-256 of `bytes`, in lower-case hex, computed when it was built.
    pub digest: &'static str,
    /// The static executable. Under 2 MiB.
    pub bytes: &'static [u8],
}

/// Operating system and architecture, in docker's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Platform {
    /// `linux`.
    pub os: &'static str,
    /// `amd64` or `arm64`.
    pub arch: &'static str,
}

/// Every runtime that this build carries; empty where none could be built,
/// see the [crate's page](crate).
#[must_use]
pub fn carried() -> &'static [CarriedRuntime] {
    CARRIED
}

/// The runtime for an engine whose `docker info` says `os` and `arch`.
///
/// Both ways in which docker names an architecture are understood: that of
/// images (`amd64`) and that of `docker info` (`x86_64`).
#[must_use]
pub fn for_platform(os: &str, arch: &str) -> Option<&'static CarriedRuntime> {
    let arch = match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    CARRIED
        .iter()
        .find(|runtime| runtime.platform.os == os && runtime.platform.arch == arch)
}

impl std::fmt::Display for Platform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.os, self.arch)
    }
}

include!(concat!(env!("OUT_DIR"), "/carried.rs"));

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;

    const SIZE_LIMIT: usize = 2 * 1024 * 1024;

    #[test]
    fn the_runtime_of_a_linux_build_is_carried() {
        let expected = usize::from(cfg!(all(
            target_os = "linux",
            any(target_arch = "x86_64", target_arch = "aarch64")
        )));
        assert!(carried().len() >= expected);
    }

    #[test]
    fn the_digest_is_that_of_the_bytes() {
        for runtime in carried() {
            let digest = Sha256::digest(runtime.bytes);
            let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(runtime.digest, hex, "{}", runtime.platform);
        }
    }

    #[test]
    fn the_runtime_is_a_static_executable_of_its_platform_under_2_mib() {
        for runtime in carried() {
            let elf = Elf(runtime.bytes);
            assert!(
                runtime.bytes.len() < SIZE_LIMIT,
                "{} bytes",
                runtime.bytes.len()
            );
            assert_eq!(runtime.bytes.get(..6), Some(&b"\x7fELF\x02\x01"[..]));
            let machine = match runtime.platform.arch {
                "amd64" => 62,
                "arm64" => 183,
                other => panic!("{other} is no platform of ours"),
            };
            assert_eq!(elf.half(18), machine, "{}", runtime.platform);
            // No program interpreter: nothing of the image is needed to start it.
            assert!(!elf.segment_types().contains(&3));
        }
    }

    #[test]
    fn a_platform_is_found_by_either_name_and_never_replaced_by_another() {
        for runtime in carried() {
            let Platform { os, arch } = runtime.platform;
            assert_eq!(for_platform(os, arch), Some(runtime));
            let kernels_name = if arch == "amd64" { "x86_64" } else { "aarch64" };
            assert_eq!(for_platform(os, kernels_name), Some(runtime));
        }
        assert_eq!(for_platform("windows", "amd64"), None);
        assert_eq!(for_platform("linux", "s390x"), None);
    }

    /// A 64-bit little-endian executable.
    struct Elf<'a>(&'a [u8]);

    impl Elf<'_> {
        fn segment_types(&self) -> Vec<u32> {
            let table = u64::from_le_bytes(self.0[32..40].try_into().unwrap());
            let (size, count) = (self.half(54), self.half(56));
            let starts = (0..count).map(|index| {
                usize::try_from(table).unwrap() + usize::from(index) * usize::from(size)
            });
            starts
                .map(|at| u32::from_le_bytes(self.0[at..at + 4].try_into().unwrap()))
                .collect()
        }

        fn half(&self, at: usize) -> u16 {
            u16::from_le_bytes(self.0[at..at + 2].try_into().unwrap())
        }
    }
}
