//! pg_upgrade from one cluster to another.

use crate::cluster::Cluster;
use std::fs;
use std::path::Path;

impl Cluster {
    /// Runs pg_upgrade from `old` to this empty cluster, both stopped. What it printed, as an error if it failed.
    pub fn try_upgrade_from(&self, old: &Cluster, options: &[&str]) -> Result<String, String> {
        let folders: [(&str, &Path); 5] = [
            ("--old-bindir", old.installation().programs()),
            ("--new-bindir", self.installation().programs()),
            ("--old-datadir", &old.data()),
            ("--new-datadir", &self.data()),
            ("--socketdir", self.socket()),
        ];
        let mut upgrade = self.installation().command("pg_upgrade");
        for (option, folder) in folders {
            upgrade.arg(option).arg(folder);
        }
        // It writes a script into the folder it runs in, and to its user a name of the operating system means nothing.
        upgrade.current_dir(self.socket()).env("PGUSER", "postgres").args(["--username=postgres", "--no-sync"]);
        let output = upgrade.args(options).output().unwrap_or_else(|error| panic!("{upgrade:?}: {error}"));
        let printed = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        if output.status.success() {
            Ok(printed)
        } else {
            Err(printed + &self.ends_of_upgrade_logs())
        }
    }

    /// What failed, if a program that pg_upgrade runs did, stands in a file of that program's output.
    fn ends_of_upgrade_logs(&self) -> String {
        let folders = fs::read_dir(self.data().join("pg_upgrade_output.d")).into_iter().flatten().flatten();
        let files = folders.flat_map(|folder| fs::read_dir(folder.path().join("log"))).flatten().flatten();
        let texts = files.map(|file| fs::read_to_string(file.path()).unwrap_or_default());
        texts.filter_map(|text| Some(text[text.rfind("error:")?..].to_owned())).collect()
    }

    /// As [`Cluster::try_upgrade_from`]. Panics if it fails.
    pub fn upgrade_from(&self, old: &Cluster, options: &[&str]) {
        if let Err(printed) = self.try_upgrade_from(old, options) {
            panic!("pg_upgrade {options:?} failed:\n{printed}");
        }
    }
}
