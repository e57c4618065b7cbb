//! The contract of a sandbox for untrusted code: keys, specs, refusals, backends and their handles.
