use bytes::Bytes;
use proptest::prelude::*;
use tar::Header;

use super::*;

const MODIFIED: ModifiedAt = ModifiedAt {
    seconds: 1_700_000_000,
    nanos: 0,
};

fn file(path: &[u8], size: u64) -> NewEntry {
    NewEntry {
        path: path.to_vec(),
        kind: NewEntryKind::File,
        size,
        mode: 0o640,
        uid: 1000,
        gid: 100,
        modified: MODIFIED,
    }
}

fn header(kind: u8, size: u64) -> Header {
    let mut header = Header::new_ustar();
    header.as_old_mut().name[..4].copy_from_slice(b"name");
    header.as_old_mut().linkflag = [kind];
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

/// A header with something done to it, and a right checksum.
fn changed(kind: u8, change: impl FnOnce(&mut Header)) -> Vec<u8> {
    let mut header = header(kind, 0);
    change(&mut header);
    header.set_cksum();
    header.as_bytes().to_vec()
}

/// A header with a body.
fn block(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut block = header(kind, body.len() as u64).as_bytes().to_vec();
    block.extend_from_slice(body);
    block.extend_from_slice(padding(body.len() as u64));
    block
}

fn records(records: &[(&str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (key, value) in records {
        pax::write(&mut body, key, value);
    }
    block(b'x', &body)
}

/// All events of a stream that comes in pieces of this size; pieces of data
/// are joined.
fn decode(stream: &[u8], piece: usize) -> (Vec<Event>, Result<(), TarError>) {
    let mut decoder = Decoder::new();
    let mut events: Vec<Event> = Vec::new();
    for piece in stream.chunks(piece) {
        decoder.feed(Bytes::copy_from_slice(piece));
        loop {
            match decoder.next() {
                Ok(None) => break,
                Ok(Some(Event::Data(new))) => match events.last_mut() {
                    Some(Event::Data(data)) => *data = [&data[..], &new[..]].concat().into(),
                    _ => events.push(Event::Data(new)),
                },
                Ok(Some(event)) => events.push(event),
                Err(error) => {
                    assert_eq!(decoder.next(), Err(error), "it is not the same for ever");
                    assert_eq!(decoder.finish(), Err(error));
                    return (events, Err(error));
                }
            }
        }
    }
    (events, decoder.finish())
}

fn refused(stream: &[u8]) -> TarError {
    let (_, result) = decode(stream, 512);
    let error = result.unwrap_err();
    assert_eq!(decode(stream, 7).1, Err(error));
    error
}

fn entries(stream: &[u8]) -> Vec<Entry> {
    let (events, result) = decode(stream, 100);
    assert_eq!(result, Ok(()));
    let entry = |event| match event {
        Event::Entry(entry) => Some(entry),
        _ => None,
    };
    events.into_iter().filter_map(entry).collect()
}

fn one(parts: &[&[u8]]) -> Entry {
    let stream = [&parts.concat()[..], END].concat();
    let [entry] = &entries(&stream)[..] else {
        panic!("not one entry");
    };
    entry.clone()
}

fn any_name() -> impl Strategy<Value = Vec<u8>> {
    let byte = (1..=255_u8).prop_filter("a separator", |byte| *byte != b'/');
    prop::collection::vec(byte, 1..=255)
        .prop_filter("no name", |name| !matches!(&name[..], b"." | b".."))
}

fn any_entry() -> impl Strategy<Value = (NewEntry, Vec<u8>)> {
    let path = prop::collection::vec(any_name(), 1..6).prop_map(|names| names.join(&b'/'));
    let ids = (any::<u32>(), any::<u32>());
    let modified = (any::<i64>(), 0..1_000_000_000_u32);
    let body = prop::option::of(prop::collection::vec(any::<u8>(), 0..3000));
    (path, any::<u32>(), ids, modified, body).prop_map(
        |(path, mode, (uid, gid), (seconds, nanos), body)| {
            let kind = match body {
                Some(_) => NewEntryKind::File,
                None => NewEntryKind::Directory,
            };
            let body = body.unwrap_or_default();
            let entry = NewEntry {
                path,
                kind,
                size: body.len() as u64,
                mode,
                uid,
                gid,
                modified: ModifiedAt { seconds, nanos },
            };
            (entry, body)
        },
    )
}

fn written(entries: &[(NewEntry, Vec<u8>)]) -> Vec<u8> {
    let mut stream = Vec::new();
    for (entry, body) in entries {
        stream.extend_from_slice(&encode_header(entry).unwrap());
        stream.extend_from_slice(body);
        stream.extend_from_slice(padding(body.len() as u64));
    }
    stream.extend_from_slice(END);
    stream
}

/// What a decoder makes of what was written.
fn expected(entries: &[(NewEntry, Vec<u8>)]) -> Vec<Event> {
    let mut events = Vec::new();
    for (entry, body) in entries {
        let (kind, end) = match entry.kind {
            NewEntryKind::File => (EntryKind::File, &b""[..]),
            NewEntryKind::Directory => (EntryKind::Directory, &b"/"[..]),
        };
        events.push(Event::Entry(Entry {
            path: [&entry.path[..], end].concat(),
            link: Vec::new(),
            kind,
            size: entry.size,
            mode: entry.mode & 0o777,
            uid: entry.uid.into(),
            gid: entry.gid.into(),
            modified: entry.modified,
        }));
        if !body.is_empty() {
            events.push(Event::Data(body.clone().into()));
        }
        events.push(Event::EntryEnd);
    }
    events.push(Event::End);
    events
}

proptest! {
    #[test]
    fn what_was_written_is_read_back_whatever_the_pieces(
        entries in prop::collection::vec(any_entry(), 0..4),
        piece in 1..2000_usize,
    ) {
        let (events, result) = decode(&written(&entries), piece);
        prop_assert_eq!(result, Ok(()));
        prop_assert_eq!(events, expected(&entries));
    }

    #[test]
    fn another_reader_reads_the_same(entries in prop::collection::vec(any_entry(), 1..3)) {
        use std::io::Read as _;
        // That reader takes a record to end at its first line feed.
        let mut entries = entries;
        for byte in entries.iter_mut().flat_map(|(entry, _)| &mut entry.path) {
            *byte = (*byte).max(b'\n' + 1);
        }
        let stream = written(&entries);
        let mut archive = ::tar::Archive::new(&stream[..]);
        for (read, (entry, body)) in archive.entries().unwrap().zip(&entries) {
            let mut read = read.unwrap();
            let mut content = Vec::new();
            read.read_to_end(&mut content).unwrap();
            let path = read.path_bytes();
            prop_assert_eq!(path.strip_suffix(b"/").unwrap_or(&path), &entry.path[..]);
            prop_assert_eq!(&content, body);
        }
    }

    #[test]
    fn any_size_is_written_and_read(size in 0..=i64::MAX as u64) {
        let header = encode_header(&file(b"a", size)).unwrap();
        let mut decoder = Decoder::new();
        decoder.feed(header);
        let Ok(Some(Event::Entry(entry))) = decoder.next() else { panic!("no entry") };
        prop_assert_eq!(entry.size, size);
        prop_assert_eq!((size as u128 + padding(size).len() as u128) % BLOCK as u128, 0);
    }

    #[test]
    fn no_bytes_make_it_panic_and_pieces_never_matter(
        bytes in prop::collection::vec(any::<u8>(), 0..3000),
        piece in 1..700_usize,
    ) {
        prop_assert_eq!(decode(&bytes, piece), decode(&bytes, bytes.len().max(1)));
    }

    #[test]
    fn damage_never_makes_it_panic(
        entries in prop::collection::vec(any_entry(), 1..3),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        piece in 1..700_usize,
    ) {
        let mut bytes = written(&entries);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        prop_assert_eq!(decode(&bytes, piece), decode(&bytes, bytes.len()));
    }
}

#[test]
fn a_name_that_ustar_holds_needs_one_block_and_any_other_a_record() {
    let length = |path: &[u8]| encode_header(&file(path, 0)).unwrap().len();
    assert_eq!(length(&[b'a'; 100]), BLOCK);
    assert_eq!(
        length(b"with space, -dash, :colon, \\back and\nline"),
        BLOCK
    );
    for path in [&[b'a'; 101][..], "na\u{ef}ve".as_bytes(), b"\xff\xfe"] {
        assert_eq!(length(path), 3 * BLOCK, "{path:?}");
    }
}

#[test]
fn setuid_setgid_and_sticky_are_not_written() {
    let mut entry = file(b"a", 0);
    entry.mode = 0o7755;
    assert_eq!(one(&[&encode_header(&entry).unwrap()]).mode, 0o755);
}

#[test]
fn what_no_archive_should_carry_is_not_written() {
    let refused = |path: &[u8]| encode_header(&file(path, 0)).unwrap_err();
    for path in [
        &b""[..],
        b"/a",
        b"a/",
        b"a//b",
        b".",
        b"./a",
        b"a/..",
        b"../a",
    ] {
        assert_eq!(refused(path), Unencodable::NotPlain, "{path:?}");
    }
    assert_eq!(refused(b"a\0b"), Unencodable::NulInPath);
    assert_eq!(refused(&[b'a'; 4096]), Unencodable::PathTooLong);
    let mut directory = file(b"a", 1);
    directory.kind = NewEntryKind::Directory;
    assert_eq!(
        encode_header(&directory),
        Err(Unencodable::DirectoryWithContent)
    );
    for path in [&b"..."[..], b"a/.b", b"a/..b"] {
        assert!(encode_header(&file(path, 0)).is_ok());
    }
}

#[test]
fn every_kind_is_told_and_only_files_have_a_body() {
    let kinds = [
        (b'0', EntryKind::File, 1),
        (0, EntryKind::File, 1),
        (b'7', EntryKind::File, 1),
        (b'1', EntryKind::HardLink, 0),
        (b'2', EntryKind::Symlink, 0),
        (b'3', EntryKind::CharDevice, 0),
        (b'4', EntryKind::BlockDevice, 0),
        (b'5', EntryKind::Directory, 0),
        (b'6', EntryKind::Fifo, 0),
        (b'Z', EntryKind::Other(b'Z'), 1),
    ];
    for (flag, kind, size) in kinds {
        let body = if size == 0 { &b""[..] } else { b"x" };
        let mut stream = header(flag, 1).as_bytes().to_vec();
        stream.extend_from_slice(body);
        stream.extend_from_slice(padding(body.len() as u64));
        let entry = one(&[&stream]);
        assert_eq!((entry.kind, entry.size), (kind, size));
    }
    let old_directory = changed(0, |header| header.as_old_mut().name[4] = b'/');
    assert_eq!(one(&[&old_directory]).kind, EntryKind::Directory);
}

#[test]
fn a_link_says_where_it_leads() {
    let link = changed(b'2', |header| {
        header.as_old_mut().linkname[..3].copy_from_slice(b"a/b");
    });
    assert_eq!(one(&[&link]).link, b"a/b");
    let long = block(b'K', &[&[b'x'; 300][..], b"\0"].concat());
    assert_eq!(one(&[&long, &link]).link, [b'x'; 300]);
    let record = records(&[("linkpath", b"\xffc")]);
    assert_eq!(one(&[&long, &record, &link]).link, b"\xffc");
}

#[test]
fn what_records_say_counts_more_than_a_header_and_a_later_one_more_than_an_earlier() {
    let long = block(b'L', b"long\0");
    let plain = block(b'0', b"");
    assert_eq!(one(&[&long, &plain]).path, b"long");
    let first = records(&[("path", b"first"), ("uid", b"3000000000"), ("size", b"9")]);
    let second = records(&[
        ("path", b"second"),
        ("size", b""),
        ("gid", b"9"),
        ("mtime", b"-1.5"),
        ("comment", b""),
    ]);
    let entry = one(&[&first, &second, &long, &plain]);
    assert_eq!((&entry.path[..], entry.size), (&b"second"[..], 0));
    assert_eq!((entry.uid, entry.gid), (3_000_000_000, 9));
    let modified = ModifiedAt {
        seconds: -2,
        nanos: 500_000_000,
    };
    assert_eq!(entry.modified, modified);
    // And of one entry only.
    let body = block(b'0', b"123456789");
    let stream = [&first[..], &body, &plain, END].concat();
    assert_eq!(entries(&stream)[1].path, b"name");
}

#[test]
fn global_records_change_nothing() {
    let mut body = Vec::new();
    pax::write(&mut body, "path", b"other");
    assert_eq!(one(&[&block(b'g', &body), &block(b'0', b"")]).path, b"name");
    assert_eq!(refused(&block(b'g', b"5 a=b")), TarError::BadRecord);
}

#[test]
fn the_prefix_of_a_long_ustar_name_is_read() {
    let long = changed(b'0', |header| {
        header.as_ustar_mut().unwrap().prefix[..5].copy_from_slice(b"above");
    });
    assert_eq!(one(&[&long]).path, b"above/name");
}

#[test]
fn numbers_are_octal_or_binary_and_nothing_else() {
    let uid = |field: [u8; 8]| {
        let stream = changed(b'0', |header| header.as_old_mut().uid = field);
        let (events, result) = decode(&[&stream[..], END].concat(), 512);
        match (events.first(), result) {
            (Some(Event::Entry(entry)), Ok(())) => Ok(entry.uid),
            (_, result) => Err(result.unwrap_err()),
        }
    };
    assert_eq!(uid(*b"0001750\0"), Ok(1000));
    assert_eq!(uid(*b"  1750 \0"), Ok(1000));
    assert_eq!(uid([0; 8]), Ok(0));
    assert_eq!(uid([0x80, 0, 0, 0, 0, 0, 1, 2]), Ok(258));
    for field in [
        *b"0008\0\0\0\0",
        *b"+1750\0\0\0",
        *b"-1\0\0\0\0\0\0",
        *b"17 50\0\0\0",
        *b"\xe9\0\0\0\0\0\0\0",
        [0xff; 8],
    ] {
        assert_eq!(uid(field), Err(TarError::BadNumber), "{field:?}");
    }
    let early = changed(b'0', |header| header.as_old_mut().mtime = [0xff; 12]);
    assert_eq!(one(&[&early]).modified.seconds, -1);
    let mut large = [0xff; 12];
    large[0] = 0x80;
    let large = changed(b'0', |header| header.as_old_mut().size = large);
    assert_eq!(refused(&large), TarError::BadNumber);
    let large = changed(b'0', |header| header.set_size(1 << 63));
    assert_eq!(refused(&large), TarError::BadNumber);
}

#[test]
fn a_record_is_refused_unless_it_is_exactly_one() {
    for record in [
        &b"5 a=b"[..],
        b"6 a=b",
        b"7 a=b\n",
        b"4 a=b\n",
        b"0 a=b\n",
        b" a=b\n",
        b"-6 a=b\n",
        b"6 a b\n",
        b"5 =b\n",
        b"99999999999999999999999 a=b\n",
        b"6 a=b\n\0\0\0",
        b"\xff\xff",
    ] {
        let stream = block(b'x', record);
        assert_eq!(refused(&stream), TarError::BadRecord, "{record:?}");
    }
    for (key, value) in [
        ("size", &b"-1"[..]),
        ("size", b"+1"),
        ("size", b"1x"),
        ("size", b"99999999999999999999"),
        ("uid", b" 1"),
        ("gid", b"1.0"),
        ("mtime", b"1."),
        ("mtime", b".5"),
        ("mtime", b"--1"),
        ("mtime", b"1.-5"),
        ("mtime", b"9999999999999999999"),
    ] {
        let stream = records(&[(key, value)]);
        assert_eq!(refused(&stream), TarError::BadNumber, "{key} {value:?}");
    }
    let stream = records(&[("path", b"a\0b")]);
    assert_eq!(refused(&stream), TarError::NulInName);
}

#[test]
fn a_damaged_header_is_refused() {
    let mut stream = block(b'0', b"");
    stream[0] ^= 1;
    assert_eq!(refused(&stream), TarError::BadChecksum);
    assert_eq!(refused(&[b'x'; 512]), TarError::BadNumber);
}

#[test]
fn a_sparse_file_is_refused_in_each_of_its_forms() {
    assert_eq!(refused(&block(b'S', b"")), TarError::Sparse);
    let stream = records(&[("GNU.sparse.major", b"1")]);
    assert_eq!(refused(&stream), TarError::Sparse);
}

#[test]
fn metadata_is_bounded_in_bytes_and_in_headers() {
    let name = vec![b'n'; 64 * 1024];
    assert_eq!(one(&[&block(b'L', &name), &block(b'0', b"")]).path, name);
    assert_eq!(
        refused(header(b'L', 64 * 1024 + 1).as_bytes()),
        TarError::TooMuchMetadata
    );
    let empty = block(b'x', b"");
    let many = |times| [empty.repeat(times), block(b'0', b""), END.to_vec()].concat();
    assert_eq!(entries(&many(31)).len(), 1);
    assert_eq!(refused(&many(32)), TarError::TooManyHeaders);
    let two = [block(b'K', &name[..40_000]), block(b'L', &name[..40_000])].concat();
    assert_eq!(refused(&two), TarError::TooMuchMetadata);
}

#[test]
fn a_name_is_neither_empty_nor_holds_nul() {
    let nameless = changed(b'0', |header| header.as_old_mut().name = [0; 100]);
    assert_eq!(refused(&nameless), TarError::EmptyName);
    assert_eq!(refused(&block(b'L', b"a\0b\0")), TarError::NulInName);
}

#[test]
fn an_archive_that_does_not_end_is_truncated_wherever_it_stops() {
    let stream = written(&[(file(&[b'\xff'; 200], 700), vec![b'x'; 700])]);
    for end in 0..stream.len() {
        let (_, result) = decode(&stream[..end], 97);
        assert_eq!(result, Err(TarError::Truncated), "{end}");
    }
    assert_eq!(decode(&stream, 97).1, Ok(()));
    assert_eq!(Decoder::new().finish(), Err(TarError::Truncated));
}

#[test]
fn what_follows_the_end_is_ignored_and_half_an_end_is_none() {
    let entry = block(b'0', b"x");
    let after = [&entry[..], END, b"whatever follows"].concat();
    assert_eq!(entries(&after).len(), 1);
    let half = [&entry[..], &END[..512], &entry[..]].concat();
    assert_eq!(refused(&half), TarError::BadEnd);
}

#[test]
fn a_description_without_its_entry_is_refused() {
    let stream = [&block(b'L', b"long\0")[..], END].concat();
    assert_eq!(refused(&stream), TarError::MissingEntry);
}

#[test]
fn bytes_that_were_not_taken_out_are_not_lost() {
    let stream = written(&[(file(b"a", 3), b"abc".to_vec())]);
    let mut decoder = Decoder::new();
    for piece in stream.chunks(500) {
        decoder.feed(Bytes::copy_from_slice(piece));
    }
    let mut events = 0;
    while decoder.next().unwrap().is_some() {
        events += 1;
    }
    assert_eq!((events, decoder.finish()), (4, Ok(())));
}
