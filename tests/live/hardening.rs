//! What `Strict` promises is what a guest finds.

use stockade::spec::Hardening;
use stockade::{ExecRequest, ExecStatus};
use stockade_tests::engine::{Fixture, Host, PYTHON, docker_ok, spec};

#[tokio::test]
async fn a_closed_sandbox_has_loopback_and_nothing_else() {
    let fixture = Fixture::python().await;
    assert_eq!(fixture.sh("ls /sys/class/net").await.stdout, "lo\n");
    let program = "
import socket
for address in ('192.0.2.1', '169.254.169.254', '172.17.0.1', '10.0.0.1'):
    s = socket.socket(); s.settimeout(5)
    try: s.connect((address, 80)); raise SystemExit(address)
    except OSError as error: assert error.errno == 101, error
try: socket.getaddrinfo('example.org', 80); raise SystemExit('resolved')
except socket.gaierror: pass
print('closed')
";
    let outcome = fixture.py(program).await;
    assert_eq!(outcome.stdout, "closed\n", "{}", outcome.stderr_text());
    fixture.close().await;
}

#[tokio::test]
async fn the_root_is_read_only_and_only_the_bounded_places_are_writable() {
    let fixture = Fixture::python().await;
    let outcome = fixture
        .sh("for d in / /etc /usr /var /root /home /.stockade /opt; do touch $d/x 2>/dev/null && echo \"wrote $d\"; done; touch /work/x /tmp/x /dev/shm/x && echo ok")
        .await;
    assert_eq!(outcome.stdout, "ok\n");
    fixture.close().await;
}

#[tokio::test]
async fn an_image_of_root_runs_as_nobody_without_any_privilege() {
    let fixture = Fixture::python().await;
    assert_eq!(
        fixture.sh("id -u; id -g; id -G").await.stdout,
        "65534\n65534\n65534\n"
    );
    let status = fixture
        .sh("grep -E 'Cap|NoNewPrivs|Seccomp:' /proc/self/status")
        .await;
    let text = status.stdout_text().into_owned();
    for line in text.lines() {
        let (name, value) = line.split_once(':').unwrap();
        match name {
            "NoNewPrivs" => assert_eq!(value.trim(), "1"),
            "Seccomp" => assert_eq!(value.trim(), "2"),
            _ => assert_eq!(value.trim(), "0000000000000000", "{name}"),
        }
    }
    fixture.close().await;
}

#[tokio::test]
async fn as_image_keeps_the_images_user_and_a_writable_root() {
    let fixture = Host::new()
        .await
        .acquire(spec(PYTHON).hardening(Hardening::AsImage))
        .await;
    let outcome = fixture
        .sh("id -u; touch /etc/x && echo written; grep CapBnd /proc/self/status")
        .await;
    assert_eq!(outcome.stdout, "0\nwritten\nCapBnd:\t0000000000000000\n");
    // Root without capabilities reads what is its own, and nobody else's.
    let file = fixture.sh("umask 077; echo secret > f; cat f").await;
    assert_eq!(file.stdout, "secret\n");
    fixture.close().await;
}

#[tokio::test]
async fn the_container_has_no_mount_of_the_host_no_port_and_no_device() {
    let fixture = Fixture::python().await;
    let inspected = docker_ok([
        "inspect",
        "--format",
        "{{json .HostConfig}}",
        fixture.container(),
    ]);
    let config: serde_json::Value = serde_json::from_str(&inspected).unwrap();
    for empty in [
        "Binds",
        "PortBindings",
        "Devices",
        "CapAdd",
        "DeviceRequests",
        "VolumesFrom",
        "Links",
    ] {
        let value = &config[empty];
        let is_empty = value.is_null()
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(serde_json::Map::is_empty);
        assert!(is_empty, "{empty}: {value}");
    }
    assert_eq!(config["NetworkMode"], "none");
    assert_eq!(config["Privileged"], false);
    for mount in config["Mounts"].as_array().unwrap() {
        assert_ne!(mount["Type"], "bind", "{mount}");
    }
    fixture.close().await;
}

#[tokio::test]
async fn every_volume_that_is_made_is_labelled() {
    let fixture = Fixture::python().await;
    let inspected = docker_ok([
        "inspect",
        "--format",
        "{{json .Mounts}}",
        fixture.container(),
    ]);
    let mounts: serde_json::Value = serde_json::from_str(&inspected).unwrap();
    for mount in mounts.as_array().unwrap() {
        if mount["Type"] == "volume" {
            let name = mount["Name"].as_str().unwrap();
            let labels = docker_ok(["volume", "inspect", "--format", "{{json .Labels}}", name]);
            assert!(labels.contains("dev.stockade.role"), "{name}: {labels}");
        }
    }
    fixture.close().await;
}

#[tokio::test]
async fn values_of_the_environment_are_on_no_command_line_of_the_host() {
    let builder = spec(PYTHON).env([
        ("SECRET", "hunter2\nand more = \"x\""),
        ("DOCKER_HOST", "tcp://evil:1"),
    ]);
    let fixture = Host::new().await.acquire(builder).await;
    let request =
        ExecRequest::shell("printf '%s|' \"$SECRET\" \"$DOCKER_HOST\" \"$EXTRA\"; sleep 1")
            .env("EXTRA", "swordfish9");
    let looking = async {
        let mut seen = String::new();
        for _ in 0..20 {
            for entry in std::fs::read_dir("/proc").unwrap().flatten() {
                let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                seen.push_str(&String::from_utf8_lossy(&line));
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        seen
    };
    let (outcome, seen) = tokio::join!(fixture.exec(request), looking);
    assert_eq!(
        outcome.stdout,
        "hunter2\nand more = \"x\"|tcp://evil:1|swordfish9|"
    );
    assert_eq!(outcome.status, ExecStatus::Exited(0));
    assert!(
        seen.contains("attach"),
        "the look did not see the channel's own command line"
    );
    assert!(!seen.contains("hunter2") && !seen.contains("swordfish9"));
    fixture.close().await;
}
