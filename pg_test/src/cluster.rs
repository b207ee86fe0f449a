//! A PostgreSQL cluster of a test's own, and what can happen to one: stops, crashes, standbys.

use crate::process::{self, output_of, Installation};
use crate::session::Session;
use postgres::{Config, NoTls};
use rustix::process::Signal;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Names the socket; each cluster's socket lies in a folder of its own.
const PORT: u16 = 5432;

/// Settings of every cluster. What a test shows must not hang on the background's timing, so nothing runs by itself, and
/// a standby makes no restartpoint. Small segments stay apart until there are several, so that reads have something to
/// merge. fsync is off: a killed server loses nothing that it gave to the operating system.
const SETTINGS: &[(&str, &str)] = &[
    ("shared_preload_libraries", "cass"),
    ("listen_addresses", ""),
    ("fsync", "off"),
    ("autovacuum", "off"),
    ("cass.eager_merge_size", "0"),
    ("checkpoint_timeout", "1h"),
    ("max_connections", "40"),
    ("shared_buffers", "32MB"),
    ("deadlock_timeout", "200ms"),
    ("lock_timeout", "60s"),
    ("log_min_messages", "log"),
    ("lc_messages", "C"),
    ("timezone", "UTC"),
];

/// How a server is stopped.
#[derive(Clone, Copy, Debug)]
pub enum Shutdown {
    /// Sessions are ended, and a checkpoint is made.
    Fast,
    /// Processes exit without a checkpoint; the next start recovers.
    Immediate,
}

/// A cluster, with the extension created in database `postgres` unless it is empty. Stopped and removed when dropped; if its server
/// runs then, all cass tables must be sound.
pub struct Cluster {
    installation: Installation,
    folder: TempDir,
    postmaster: Option<Child>,
    /// Whether the test has damaged tables on purpose.
    damaged: AtomicBool,
}

impl Default for Cluster {
    fn default() -> Self {
        Cluster::new()
    }
}

impl Cluster {
    /// A running cluster with the settings that every test has.
    pub fn new() -> Self {
        Cluster::with_settings(&[])
    }

    /// A running cluster with settings of the test's own besides.
    pub fn with_settings(settings: &[(&str, &str)]) -> Self {
        Cluster::of(&Installation::default(), settings)
    }

    /// As [`Cluster::with_settings`], with the programs of an installation.
    pub fn of(installation: &Installation, settings: &[(&str, &str)]) -> Self {
        let mut cluster = Cluster::empty_of(installation, settings);
        cluster.start();
        cluster.connect().run("CREATE EXTENSION cass");
        cluster
    }

    /// A cluster with settings of the test's own, as initdb makes it: stopped, and without the extension.
    pub fn empty(settings: &[(&str, &str)]) -> Self {
        Cluster::empty_of(&Installation::default(), settings)
    }

    fn empty_of(installation: &Installation, settings: &[(&str, &str)]) -> Self {
        let cluster = Cluster::stopped(installation);
        output_of(Command::new("cp").arg("-a").arg(initial_data(installation)).arg(cluster.data()));
        cluster.configure(SETTINGS);
        cluster.configure(settings);
        cluster
    }

    /// A folder without data.
    fn stopped(installation: &Installation) -> Self {
        Cluster {
            installation: installation.clone(),
            folder: new_folder(),
            postmaster: None,
            damaged: AtomicBool::new(false),
        }
    }

    /// Whose programs the cluster is run with.
    pub fn installation(&self) -> &Installation {
        &self.installation
    }

    /// Says that the test damages tables on purpose, so that they need not be sound when the cluster is dropped.
    pub fn expect_damage(&self) {
        self.damaged.store(true, Ordering::Relaxed);
    }

    /// The folder of the cluster's data.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The folder that holds the server's socket.
    pub fn socket(&self) -> &Path {
        self.folder.path()
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Adds settings to `postgresql.conf`; they hold from the next start.
    pub fn configure(&self, settings: &[(&str, &str)]) {
        let path = self.data().join("postgresql.conf");
        let mut file = OpenOptions::new().append(true).open(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        for (name, value) in settings {
            writeln!(file, "{name} = '{value}'").unwrap_or_else(|e| panic!("{path:?}: {e}"));
        }
    }

    /// Starts the server and waits until it takes sessions.
    pub fn start(&mut self) {
        assert!(self.postmaster.is_none(), "the server runs already");
        let path = self.log();
        let log = OpenOptions::new().append(true).create(true).open(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        let again = log.try_clone().unwrap_or_else(|e| panic!("{path:?}: {e}"));
        let mut start = self.installation.command("postgres");
        start
            .arg("-D")
            .arg(self.data())
            .arg("-k")
            .arg(self.socket())
            .args(["-p", &PORT.to_string()])
            .stdin(Stdio::null())
            .stdout(again)
            .stderr(log);
        self.postmaster = Some(start.spawn().unwrap_or_else(|e| panic!("{start:?}: {e}")));
        self.wait_until_ready();
    }

    fn wait_until_ready(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.config("postgres").connect(NoTls).is_err() {
            let ended = self.postmaster.as_mut().and_then(|child| child.try_wait().ok()).flatten();
            if ended.is_some() || Instant::now() > deadline {
                panic!("the server does not start:\n{}", self.last_lines_of_log());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops the server.
    pub fn stop(&mut self, how: Shutdown) {
        if let Some(mut postmaster) = self.postmaster.take() {
            let signal = match how {
                Shutdown::Fast => Signal::INT,
                Shutdown::Immediate => Signal::QUIT,
            };
            process::send(postmaster.id(), signal);
            postmaster.wait().unwrap_or_else(|e| panic!("waiting for the server: {e}"));
        }
    }

    /// Kills all processes of the server with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut postmaster) = self.postmaster.take() {
            process::kill_server(postmaster.id());
            postmaster.wait().unwrap_or_else(|e| panic!("waiting for the server: {e}"));
        }
    }

    /// Kills the server `delay` after a statement has been sent to it, and starts it again. Returns a new session.
    pub fn crash_during(&mut self, sql: &str, delay: Duration) -> Session {
        let statement = self.connect().in_background(sql);
        std::thread::sleep(delay);
        self.kill();
        let _ = statement.join();
        self.start();
        self.connect()
    }

    /// Stops the server and starts it again.
    pub fn restart(&mut self, how: Shutdown) {
        self.stop(how);
        self.start();
    }

    /// The last lines that the server logged.
    pub fn last_lines_of_log(&self) -> String {
        let text = fs::read(self.log()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// How to connect to a database.
    pub fn config(&self, database: &str) -> Config {
        let mut config = Config::new();
        config.host_path(self.socket()).port(PORT).user("postgres").dbname(database);
        config
    }

    /// A new session in database `postgres`.
    pub fn connect(&self) -> Session {
        self.connect_to("postgres")
    }

    /// A new session, once the server has recovered from the sudden end of one of its processes. It takes sessions until it has
    /// noticed that end, which it has when the process is no zombie any more.
    pub fn connect_when_recovered(&self, ended: i32) -> Session {
        let process = PathBuf::from(format!("/proc/{ended}"));
        crate::session::wait_until("the server has noticed the end of its process", || !process.exists());
        let mut client = None;
        crate::session::wait_until("the server has recovered", || {
            client = self.config("postgres").connect(NoTls).ok();
            client.is_some()
        });
        client.map_or_else(|| self.connect(), Session::new)
    }

    /// A new session in a database.
    pub fn connect_to(&self, database: &str) -> Session {
        match self.config(database).connect(NoTls) {
            Ok(client) => Session::new(client),
            Err(error) => panic!("no session in {database}: {error}"),
        }
    }

    /// A command that runs a client program against this server, as `psql` or `pg_dump`.
    pub fn client(&self, name: &str) -> Command {
        self.client_of(&self.installation, name)
    }

    fn client_of(&self, installation: &Installation, name: &str) -> Command {
        let mut client = installation.command(name);
        client.env("PGHOST", self.socket()).env("PGPORT", PORT.to_string()).env("PGUSER", "postgres");
        client.env("PGDATABASE", "postgres").stdin(Stdio::null());
        client
    }

    /// Runs a client program and returns what it printed. Panics if it fails.
    pub fn run_client(&self, name: &str, arguments: &[&str]) -> String {
        output_of(self.client(name).args(arguments))
    }

    /// As [`Cluster::run_client`], with the program of an installation.
    pub fn run_client_of(&self, installation: &Installation, name: &str, arguments: &[&str]) -> String {
        output_of(self.client_of(installation, name).args(arguments))
    }

    /// Runs a program that works on the cluster's data folder, as `pg_checksums`, and returns what it printed. Panics if it fails.
    pub fn run_server_tool(&self, name: &str, arguments: &[&str]) -> String {
        let mut tool = self.installation.command(name);
        tool.args(arguments);
        match name {
            "pg_verifybackup" => tool.arg(self.data()),
            "pg_rewind" => tool.arg("--target-pgdata").arg(self.data()),
            _ => tool.arg("--pgdata").arg(self.data()),
        };
        output_of(&mut tool)
    }

    /// A base backup of this cluster, not started.
    pub fn backup(&self) -> Cluster {
        self.base_backup(&[])
    }

    fn base_backup(&self, options: &[&str]) -> Cluster {
        let backup = Cluster::stopped(&self.installation);
        output_of(
            self.client("pg_basebackup")
                .args(["--checkpoint=fast", "--wal-method=stream", "--no-sync"])
                .args(options)
                .arg("--pgdata")
                .arg(backup.data()),
        );
        backup
    }

    /// Another cluster with a copy of the data of this one, which is stopped.
    pub fn copy(&self) -> Cluster {
        assert!(self.postmaster.is_none(), "the server runs");
        let copy = Cluster::stopped(&self.installation);
        output_of(Command::new("cp").arg("-a").arg(self.data()).arg(copy.data()));
        copy
    }

    /// Puts an empty file into the data folder, as `recovery.signal`.
    pub fn mark(&self, name: &str) {
        let path = self.data().join(name);
        fs::write(&path, []).unwrap_or_else(|e| panic!("{path:?}: {e}"));
    }

    /// A running standby that streams from this cluster.
    pub fn standby(&self) -> Cluster {
        let mut standby = self.base_backup(&["--write-recovery-conf"]);
        standby.start();
        standby
    }

    /// Waits until this standby has replayed all that `primary` has written so far.
    pub fn catch_up_with(&self, primary: &Cluster) {
        let position = primary.connect().value("SELECT pg_current_wal_flush_lsn()");
        let mut session = self.connect();
        crate::wait_until("the standby has caught up", || {
            session.value(&format!("SELECT pg_last_wal_replay_lsn() >= '{position}'")) == "t"
        });
    }

    /// Promotes this standby and waits until it takes writes.
    pub fn promote(&self) {
        self.connect().run("SELECT pg_promote(wait => true)");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let mut unsound = None;
        if std::thread::panicking() {
            eprintln!("The server's log ends:\n{}", self.last_lines_of_log());
        } else if self.postmaster.is_some() && !self.damaged.load(Ordering::Relaxed) {
            unsound = catch_unwind(AssertUnwindSafe(|| self.assert_sound())).err();
        }
        if let Some(mut postmaster) = self.postmaster.take() {
            process::send(postmaster.id(), Signal::QUIT);
            let _ = postmaster.wait();
        }
        if let Some(panic) = unsound {
            resume_unwind(panic);
        }
    }
}

/// A folder that servers may write. Its path is short, as a socket's must be (107 bytes).
fn new_folder() -> TempDir {
    let folder = tempfile::Builder::new().prefix("cass-").tempdir_in("/tmp");
    let folder = folder.unwrap_or_else(|error| panic!("no folder in /tmp: {error}"));
    process::give_to_server_user(folder.path());
    folder
}

/// The data of a cluster as initdb makes it, made once and kept beside the tests' programs.
fn initial_data(installation: &Installation) -> PathBuf {
    static MAKING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let version = installation.version().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let test = std::env::current_exe().unwrap_or_else(|error| panic!("the test's own path: {error}"));
    let place = test.ancestors().nth(2).unwrap_or(Path::new("/tmp")).join(format!("cluster-{version}"));
    if !place.exists() {
        let folder = new_folder();
        let made = folder.path().join("data");
        output_of(
            installation
                .command("initdb")
                .args(["--username=postgres", "--auth=trust", "--data-checksums", "--no-sync"])
                .args(["--encoding=UTF8", "--locale=C.UTF-8", "--pgdata"])
                .arg(&made),
        );
        // Under another name first: another test program may be at the same.
        let copy = place.with_extension(std::process::id().to_string());
        output_of(Command::new("cp").arg("-a").arg(&made).arg(&copy));
        if fs::rename(&copy, &place).is_err() {
            let _ = fs::remove_dir_all(&copy);
        }
    }
    place
}
