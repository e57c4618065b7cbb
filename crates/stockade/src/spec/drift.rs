//! Which fields define a sandbox.

use super::SandboxSpec;

impl SandboxSpec {
    /// Names of the fields that define a sandbox and differ between the two.
    ///
    /// Empty when a sandbox that was made from the one serves the other: all
    /// that differs then can change on a live sandbox (the policy of an
    /// allowlist), binds single calls only (transfer limits, declared
    /// outputs), or is for the host (labels, floors).
    #[must_use]
    pub fn drift(&self, other: &Self) -> Vec<&'static str> {
        let defining = [
            ("kind", self.kind == other.kind),
            ("image", self.image == other.image),
            ("egress", self.egress.mode() == other.egress.mode()),
            ("work_dir", self.work_dir == other.work_dir),
            ("storage", self.storage == other.storage),
            ("hardening", self.hardening == other.hardening),
            ("limits", self.limits == other.limits),
            ("env", self.env == other.env),
            ("idle_limit", self.idle_limit == other.idle_limit),
            ("max_age", self.max_age == other.max_age),
            (
                "isolation_scope",
                self.isolation_scope == other.isolation_scope,
            ),
            (
                "execution_contract",
                self.execution_contract == other.execution_contract,
            ),
            ("services", self.services == other.services),
        ];
        let differing = defining.into_iter().filter(|(_, same)| !same);
        differing.map(|(field, _)| field).collect()
    }
}
