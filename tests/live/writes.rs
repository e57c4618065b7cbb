//! Ordinary tools work: homes, temporary files, installs, repositories.

use stockade::{ExecRequest, ExecStatus};
use stockade_tests::engine::{Fixture, Host, remaps_ids, spec};

/// The same image with `USER 12345`, an id that its `/etc/passwd` lacks.
const NUMERIC_USER: &str = "stockade-test/uid-12345:1";

#[tokio::test]
async fn a_user_without_a_name_has_a_home_of_its_own() {
    let fixture = Host::new().await.acquire(spec(NUMERIC_USER)).await;
    let program = "
import os, pathlib, tempfile
home = pathlib.Path.home()
assert os.getuid() == 12345, os.getuid()
assert home.stat().st_uid == int(os.environ['OWNER']), home
(home / '.cache').mkdir()
with tempfile.NamedTemporaryFile() as file: file.write(b'x')
print(home)
";
    // An id that the engine does not map is shown as the kernel's nobody.
    let owner = if remaps_ids() { "65534" } else { "12345" };
    let request = ExecRequest::argv(["python3", "-c", program]).env("OWNER", owner);
    let outcome = fixture.exec(request).await;
    assert_eq!(outcome.stdout, "/work\n", "{}", outcome.stderr_text());
    fixture.close().await;
}

#[tokio::test]
async fn a_package_installs_for_the_user_and_its_program_is_found() {
    let fixture = Host::new().await.acquire(spec(NUMERIC_USER)).await;
    // A package made on the spot: there is no network to fetch one from.
    let line = "
set -e
mkdir -p pkg && cd pkg
printf 'def main(): print(\"installed\")\\n' > hello.py
python3 - <<'END'
import zipfile
with zipfile.ZipFile('hello-1.0-py3-none-any.whl', 'w') as wheel:
    wheel.write('hello.py')
    d = 'hello-1.0.dist-info/'
    wheel.writestr(d + 'METADATA', 'Metadata-Version: 2.1\\nName: hello\\nVersion: 1.0\\n')
    wheel.writestr(d + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(d + 'entry_points.txt', '[console_scripts]\\nhello-there = hello:main\\n')
    wheel.writestr(d + 'RECORD', '')
END
pip install --quiet --user --no-index --break-system-packages ./hello-1.0-py3-none-any.whl
hello-there
";
    let outcome = fixture.exec(ExecRequest::shell(line)).await;
    assert_eq!(
        outcome.status,
        ExecStatus::Exited(0),
        "{}",
        outcome.stderr_text()
    );
    assert_eq!(outcome.stdout, "installed\n");
    fixture.close().await;
}

#[tokio::test]
async fn a_repository_takes_a_commit() {
    let fixture = Host::new().await.acquire(spec(NUMERIC_USER)).await;
    let line = "
set -e
git init -q repo && cd repo
git config user.name Somebody && git config user.email somebody@example.org
seq 1 1000 > numbers && git add numbers && git commit -qm 'Add numbers' && git gc -q
git status --porcelain && git log --format=%s
";
    let outcome = fixture.exec(ExecRequest::shell(line)).await;
    assert_eq!(
        outcome.status,
        ExecStatus::Exited(0),
        "{}",
        outcome.stderr_text()
    );
    assert_eq!(outcome.stdout, "Add numbers\n");
    fixture.close().await;
}

#[tokio::test]
async fn programs_run_from_the_work_directory_and_from_tmp() {
    let fixture = Fixture::python().await;
    let line = "for d in /work /tmp; do printf '#!/bin/sh\\necho ran\\n' > $d/p; chmod +x $d/p; $d/p; done";
    assert_eq!(fixture.sh(line).await.stdout, "ran\nran\n");
    fixture.close().await;
}
