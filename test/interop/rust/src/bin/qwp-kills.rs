// Sends rows to two tables through the official Rust client, which stores what is not acknowledged in a folder, connects
// again and repeats it. Prints `sent N` when N rows of each table are handed over, and `acknowledged N` when they are
// acknowledged. Ends when its input ends. Run by qwp_kills.py, which kills the server meanwhile.
//
//   qwp-kills 127.0.0.1:9000 FOLDER SEED

use questdb::ingress::{AckLevel, Sender, TimestampNanos};
use questdb::ErrorCode;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const FIRST: i64 = 1_704_067_200_000_000;
const FRAME_ROWS: i64 = 50;
const TRIES: usize = 20;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, folder, seed] = arguments.as_slice() else { panic!("arguments: ADDRESS FOLDER SEED") };
    let mut sender = Sender::from_conf(format!(
        "ws::addr={address};sf_dir={folder};sender_id=kills;reconnect_max_duration_millis=300000;"
    ))?;
    let mut buffer = sender.new_buffer();
    let mut random = Random(seed.parse()?);
    let ended = watch_input();
    let mut sent = 0;
    while !ended.load(Ordering::Relaxed) {
        for n in sent..sent + FRAME_ROWS {
            for table in ["plain", "keyed"] {
                buffer
                    .table(table)?
                    .symbol("k", format!("k{}", n % 97))?
                    .column_i64("n", n)?
                    .at(TimestampNanos::new((FIRST + n) * 1000))?;
            }
        }
        sender.flush(&mut buffer)?;
        sent += FRAME_ROWS;
        say("sent", sent)?;
        let percent = random.below(100);
        if percent < 20 {
            wait(&mut sender)?;
            say("acknowledged", sent)?;
        } else if percent < 44 {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    wait(&mut sender)?;
    say("acknowledged", sent)
}

/// Restarts may take longer than the client waits; it goes on delivering meanwhile.
fn wait(sender: &mut Sender) -> Result<()> {
    for _ in 0..TRIES {
        match sender.wait(AckLevel::Ok, Duration::from_secs(30)) {
            Err(error) if error.code() == ErrorCode::FailoverRetry => {}
            result => return Ok(result?),
        }
    }
    Err("the server does not acknowledge any more".into())
}

fn say(what: &str, rows: i64) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{what} {rows}")?;
    Ok(out.flush()?)
}

fn watch_input() -> Arc<AtomicBool> {
    let ended = Arc::new(AtomicBool::new(false));
    let flag = ended.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        flag.store(true, Ordering::Relaxed);
    });
    ended
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
