//! Removing.

use stockade_wire::files::{Answer, FileFault};

use crate::support::files::{fault, list, read, reclaim, remove, write};
use crate::support::{Options, Sandbox, argv, shell};

#[test]
fn what_is_removed_is_gone_and_nothing_else_is() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    client
        .run(&shell(
            "mkdir -p tree/a/b/c neighbour out; echo kept > out/kept; echo x > tree/f; \
             echo x > tree/a/b/c/g; ln -s ../../out tree/a/out; ln -s ../../out/kept tree/a/kept; \
             mkfifo tree/fifo; mkdir empty; echo x > file",
        ))
        .code();
    for path in ["tree", "empty"] {
        assert_eq!(
            fault(client.one(&work, remove(path, false))),
            FileFault::NeedsRecursive
        );
    }
    let asks = [
        remove("file", false),
        remove("file", false),
        remove("empty", true),
        remove("tree", true),
        remove("none/deeper", true),
        reclaim("tree"),
    ];
    client.batch(&work, &asks).done();
    assert_eq!(
        client.run(&shell("ls; cat out/kept")).text(),
        "neighbour\nout\nkept\n"
    );
}

#[test]
fn directories_that_their_owner_locked_are_removed() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    for mode in ["000", "111", "444", "555", "600"] {
        client
            .run(&shell(&format!(
                "mkdir -p t/a/b; echo x > t/a/b/f; chmod {mode} t/a/b t/a t"
            )))
            .code();
        assert_eq!(client.one(&work, remove("t", true)), Answer::Done, "{mode}");
    }
    // What is above what is removed is not ours to unlock.
    client.run(&shell("mkdir -p p/t; chmod 555 p")).code();
    assert_eq!(
        fault(client.one(&work, remove("p/t", true))),
        FileFault::Denied
    );
    assert_eq!(client.run(&shell("stat -c %a p; ls p")).text(), "555\nt\n");
}

#[test]
fn a_tree_of_any_depth_is_removed_with_few_descriptors() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    let deep = "import os\n\
         os.mkdir('t')\n\
         os.chdir('t')\n\
         for i in range(100000):\n\
         \x20os.mkdir('d'); open('f', 'w').close() if i % 1000 == 0 else None; os.chdir('d')\n";
    client.run(&argv(&["python3", "-c", deep])).code();
    let served = client.batch(&work, &[remove("t", true)]).done();
    eprintln!("100,000 levels: {} ms", served.exit.wall_ms);
    assert!(served.exit.peak_memory < 8 << 20, "{:?}", served.exit);
    assert_eq!(client.run(&argv(&["ls", "-A"])).text(), "");
}

#[test]
fn a_wide_directory_is_removed_in_little_memory() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    let wide = "import os\n\
         os.mkdir('t')\n\
         for i in range(50000): os.mkdir(f't/{i}') if i % 2 else open(f't/{i}', 'w').close()\n";
    client.run(&argv(&["python3", "-c", wide])).code();
    let served = client.batch(&work, &[reclaim("t")]).done();
    eprintln!("50,000 entries: {} ms", served.exit.wall_ms);
    assert!(served.exit.peak_memory < 8 << 20, "{:?}", served.exit);
    assert_eq!(client.run(&argv(&["ls", "-A"])).text(), "");
}

#[test]
fn few_descriptors_are_enough_to_remove_and_to_list_what_can_be_listed() {
    let Some(sandbox) = Sandbox::with(&Options {
        prepare: "ulimit -n 40",
        ..Options::default()
    }) else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    let deep = "mkdir t; cd t; for i in $(seq 60); do mkdir d; : > f; cd d; done";
    client.run(&shell(deep)).code();
    let served = client.batch(&work, &[list("t", true, 1000)]).whole();
    let cut = Answer::Listed {
        truncated: true,
        closed: Vec::new(),
    };
    assert_eq!(served.last(0), cut);
    assert!(served.items[0].entries().len() > 40);
    client.batch(&work, &[remove("t", true)]).done();
    assert_eq!(client.run(&argv(&["ls", "-A"])).text(), "");
}

#[test]
fn an_overlay_with_an_images_content_is_written_and_emptied() {
    let Some(sandbox) = Sandbox::with(&Options {
        prepare: "mkdir WORK/../layers; mount -t tmpfs layers WORK/../layers; cd WORK/../layers; \
                  mkdir -p lower/t upper over; echo image > lower/f; \
                  (cd lower/t; for i in $(seq 300); do mkdir d; echo x > f; cd d; done); \
                  chown -R $(stat -c %u:%g WORK) lower upper; mkdir WORK/o work; \
                  mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work,redirect_dir=off over WORK/o; cd /",
        ..Options::default()
    }) else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    let asks = [
        read("o/f"),
        write("o/f", b"new"),
        write("o/t/d/new", b"new"),
        read("o/f"),
    ];
    let served = client.batch(&work, &asks).done();
    assert_eq!(
        (&served.items[0].data[..], &served.items[3].data[..]),
        (&b"image\n"[..], &b"new"[..])
    );
    client
        .batch(&work, &[remove("o/t", true), remove("o/f", false)])
        .done();
    assert_eq!(client.run(&argv(&["ls", "-A", "o"])).text(), "");
}
