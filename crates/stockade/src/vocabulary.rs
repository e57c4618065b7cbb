//! The fixed words of the contract.
//!
//! Ranked enumerations are ordered (`<`) from weak to strong, or from narrow
//! to wide where their documentation says so; the others have no order on
//! purpose. [`as_str`](Isolation::as_str) and [`FromStr`](std::str::FromStr)
//! use one spelling, which is stable.

use crate::words::{Words, words};

words! { ranked "isolation"
    /// How strongly a sandbox is kept apart from its host, weakest first.
    Isolation {
        /// Not at all.
        None = "none",
        /// By a language runtime in the host's process.
        Runtime = "runtime",
        /// By an operating system process.
        OsProcess = "os_process",
        /// By a container that shares the host's kernel.
        Container = "container",
        /// By a container with a second kernel surface in between.
        HardenedContainer = "hardened_container",
        /// By a micro virtual machine.
        MicroVm = "microvm",
        /// By a virtual machine.
        Vm = "vm",
    }
}

words! { ranked "isolation scope"
    /// How much of a conversation one sandbox serves, widest first.
    IsolationScope {
        /// All calls of one conversation share it.
        Conversation = "conversation",
        /// Every call has its own.
        Call = "call",
    }
}

words! { ranked "cleanup"
    /// What must happen after a tool call, weakest first.
    Cleanup {
        /// The call's own directory is removed.
        Reclaim = "reclaim",
        /// The sandbox goes back to a known state.
        Reset = "reset",
        /// The sandbox is removed.
        Dispose = "dispose",
    }
}

words! { unranked "egress mode"
    /// What a sandbox may reach on the network. Not ranked: a mode is served
    /// exactly or not at all, and never replaced by a stricter or looser one.
    EgressMode {
        /// Nothing; there is no interface but loopback.
        Closed = "closed",
        /// What a policy names, through the proxy.
        Allowlist = "allowlist",
        /// Everything.
        Unrestricted = "unrestricted",
    }
}

words! { ranked "identity scope"
    /// How widely one attached credential is shared, narrowest first; wider is worse.
    IdentityScope {
        /// There is none.
        None = "none",
        /// One sandbox has it.
        PerSandbox = "per_sandbox",
        /// One scope's sandboxes have it.
        PerScope = "per_scope",
        /// Everybody's sandboxes have it.
        Shared = "shared",
    }
}

words! { unranked "authority channel"
    /// How an attached credential takes effect.
    AuthorityChannel {
        /// The egress proxy sets a header.
        EgressHeader = "egress_header",
    }
}

words! { unranked "capability"
    /// What a backend can do for a sandbox.
    Capability {
        /// Run commands.
        Exec = "exec",
        /// Run code in a language runtime.
        RunCode = "run_code",
        /// Let guest code call the host's tools.
        HostTools = "host_tools",
        /// Write files.
        FilesIn = "files_in",
        /// Read files.
        FilesOut = "files_out",
        /// List directories.
        FilesList = "files_list",
        /// Remove files.
        FilesDelete = "files_delete",
        /// Go back to a known state.
        Snapshot = "snapshot",
        /// Attach a credential.
        AttachedIdentity = "attached_identity",
        /// Remove a call's directory. A backend's evidence only: a spec may
        /// not require it.
        Reclaim = "reclaim",
        /// Enforce the methods of an egress rule.
        EgressMethods = "egress_methods",
        /// Enforce the paths of an egress rule.
        EgressPaths = "egress_paths",
    }
}

/// A set of capabilities.
pub type Capabilities = Words<Capability>;

words! { unranked "operating system family"
    /// The family of the guest's operating system.
    OsFamily {
        /// Linux and the like.
        Posix = "posix",
        /// Windows.
        Windows = "windows",
    }
}

words! { unranked "identity"
    /// Whose authority a host tool exercises.
    Identity {
        /// The application's.
        App = "app",
        /// The user's.
        User = "user",
    }
}

words! { unranked "output disposition"
    /// What happens to a declared output.
    OutputDisposition {
        /// It is delivered to the host's sink.
        Land = "land",
        /// The caller reads it itself; it counts against the limits all the same.
        Consume = "consume",
    }
}

words! { unranked "feature"
    /// A part of a spec that is no [`Capability`] and that a backend serves or
    /// does not serve.
    ///
    /// Each belongs to a field of [`SandboxSpec`](crate::SandboxSpec) whose
    /// default needs nothing. A spec that uses one is refused by every backend
    /// whose [`Declarations`](crate::Declarations) do not list it.
    Feature {
        /// An image built from a directory.
        ImageBuild = "image_build",
        /// The image's own user and a writable root.
        HardeningAsImage = "hardening_as_image",
        /// A work directory in the image's root.
        StorageRoot = "storage_root",
        /// A work directory on disk, which survives a stop.
        StorageDisk = "storage_disk",
        /// Outputs that are declared, or named at call time.
        DeclaredOutputs = "declared_outputs",
        /// One call at a time, demanded by the spec.
        ExclusiveAdmission = "exclusive_admission",
        /// A floor for what happens after a tool call.
        CleanupFloor = "cleanup_floor",
        /// A contract string that pins reuse.
        ExecutionContract = "execution_contract",
        /// Services beside the sandbox.
        Services = "services",
        /// A sandbox that is discarded after a command was ended early.
        DiscardAfterAbort = "discard_after_abort",
        /// Calls of the host's tools from a command.
        HostToolCalls = "host_tool_calls",
    }
}

words! { unranked "direction"
    /// Which way files go.
    TransferDirection {
        /// Into the sandbox.
        In = "in",
        /// Out of it.
        Out = "out",
    }
}

words! { unranked "disposal code"
    /// Why something could not be removed, in the order in which one of
    /// several is reported.
    DisposalCode {
        /// The engine could not be reached.
        Unreachable = "unreachable",
        /// It took too long.
        Timeout = "timeout",
        /// The engine refused.
        Refused = "refused",
        /// What there is could not be listed, so nothing was removed.
        Unlisted = "unlisted",
        /// Anything else.
        Unknown = "unknown",
    }
}
