//! Programs of PostgreSQL: where they are, as whom they run, and how a whole server is killed.

use rustix::process::{kill_process, Pid, Signal};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The operating system's user that servers run as when the tests run as root, which `postgres` refuses.
pub const SERVER_USER: &str = "postgres";

/// An installation of PostgreSQL with cass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    programs: PathBuf,
}

impl Default for Installation {
    /// The one whose programs lie in the folder `CASS_PGBIN`, default `/usr/lib/postgresql/15/bin`.
    fn default() -> Self {
        let folder = std::env::var_os("CASS_PGBIN").unwrap_or_else(|| "/usr/lib/postgresql/15/bin".into());
        Installation { programs: folder.into() }
    }
}

impl Installation {
    /// That of an older version of PostgreSQL, in the folder `CASS_OLD_PGBIN`, if there is one.
    pub fn older() -> Option<Self> {
        std::env::var_os("CASS_OLD_PGBIN").map(|folder| Installation { programs: folder.into() })
    }

    /// The folder of its programs.
    pub fn programs(&self) -> &Path {
        &self.programs
    }

    /// A command that runs a program of PostgreSQL as a user it accepts.
    pub fn command(&self, name: &str) -> Command {
        let program = self.programs.join(name);
        let mut command = if runs_as_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", SERVER_USER, "--regid", SERVER_USER, "--init-groups", "--"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        // The folder the tests run in may be closed to that user.
        command.current_dir("/").env("LC_ALL", "C.UTF-8");
        command
    }

    /// What `postgres --version` prints.
    pub fn version(&self) -> String {
        output_of(self.command("postgres").arg("--version")).trim().to_owned()
    }

    /// Whether a library of PostgreSQL's contrib folder is there. Panics if 15 lacks it: only some packages of others do.
    pub fn has_library(&self, name: &str) -> bool {
        let folder = output_of(self.command("pg_config").arg("--pkglibdir"));
        let found = Path::new(folder.trim()).join(format!("{name}.so")).exists();
        assert!(found || !self.version().contains(") 15."), "{name} is missing");
        found
    }
}

fn runs_as_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs a command to its end and returns its standard output. Panics if it fails.
pub fn output_of(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Gives a folder to the user that servers run as.
pub fn give_to_server_user(folder: &Path) {
    if runs_as_root() {
        output_of(Command::new("chown").arg(SERVER_USER).arg(folder));
    }
}

/// Kills a server at once, as a loss of power would end it: no process of it gets a chance to do anything more.
/// `postmaster` must be a process that the caller started.
pub fn kill_server(postmaster: u32) {
    // Stopped first, so that it starts no further child while the children are listed.
    send(postmaster, Signal::STOP);
    let children = children_of(postmaster);
    send(postmaster, Signal::KILL);
    for child in &children {
        send(*child, Signal::KILL);
    }
    let deadline = Instant::now() + Duration::from_secs(30);
    while children.iter().any(|child| is_alive(*child)) {
        assert!(Instant::now() < deadline, "processes of a killed server are still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal to a process, which may be gone already.
pub fn send(process: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

fn children_of(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|process| status_of(*process).is_some_and(|(_, of)| of == parent))
        .collect()
}

fn is_alive(process: u32) -> bool {
    status_of(process).is_some_and(|(state, _)| state != "Z" && state != "X")
}

/// State and parent of a process.
fn status_of(process: u32) -> Option<(String, u32)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is the name in parentheses, which may hold anything.
    let mut fields = stat.get(stat.rfind(')')? + 2..)?.split(' ');
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}
