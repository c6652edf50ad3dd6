//! Every replay in `tests/data/replays` holds what it expects. What a file shows is said in the file.

use std::path::Path;

use turnlock_replay::player::FEATURES;
use turnlock_replay::script::Script;

#[test]
fn every_replay_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/replays");
    let mut broken = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        let script = Script::parse(&name, &std::fs::read_to_string(&path).unwrap(), FEATURES).unwrap();
        let played = turnlock_replay::play(&script, 0).unwrap();
        broken.extend(played.failures.iter().map(|failure| format!("{name}: {failure:?}")));
        count += 1;
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(count > 3, "the folder is the right one");
}
