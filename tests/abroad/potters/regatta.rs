// Regatta: predicts a boat's speed from wind and trim. Two threads simulate legs of
// the course and lay them on a shelf, the main thread takes them and trains.
// Build: rustc -O regatta.rs
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const LEGS: usize = 128;
const INPUTS: usize = 64;

struct Batch {
    sea: Vec<f32>,
    speed: Vec<f32>,
}

struct Shelf {
    batches: Mutex<VecDeque<Batch>>,
    changed: Condvar,
    room: usize,
    nap: Option<Duration>,
    closed: AtomicBool,
}

impl Shelf {
    #[inline(never)]
    fn put(&self, batch: Batch) {
        let mut batches = self.batches.lock().unwrap();
        while batches.len() >= self.room && !self.closed.load(Ordering::Relaxed) {
            batches = match self.nap {
                Some(nap) => {
                    drop(batches);
                    thread::sleep(nap);
                    self.batches.lock().unwrap()
                }
                None => self.changed.wait(batches).unwrap(),
            };
        }
        batches.push_back(batch);
        self.changed.notify_all();
    }

    #[inline(never)]
    fn take(&self) -> Batch {
        let mut batches = self.batches.lock().unwrap();
        loop {
            if let Some(batch) = batches.pop_front() {
                self.changed.notify_all();
                return batch;
            }
            batches = match self.nap {
                Some(nap) => {
                    drop(batches);
                    thread::sleep(nap);
                    self.batches.lock().unwrap()
                }
                None => self.changed.wait(batches).unwrap(),
            };
        }
    }
}

fn sail(shelf: Arc<Shelf>, mut seed: u64) {
    while !shelf.closed.load(Ordering::Relaxed) {
        let mut batch = Batch { sea: Vec::with_capacity(LEGS * INPUTS), speed: Vec::with_capacity(LEGS) };
        for _ in 0..LEGS {
            let mut wind = 0.0f32;
            for _ in 0..INPUTS {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let gust = ((seed >> 40) as f32 / 16777216.0 - 0.5).sin();
                wind = 0.9 * wind + gust;
                batch.sea.push(wind);
            }
            batch.speed.push(wind.tanh());
        }
        shelf.put(batch);
    }
}

#[inline(never)]
fn learn(weights: &mut [f32], batch: &Batch) -> f32 {
    let mut loss = 0.0;
    for (leg, speed) in batch.sea.chunks(INPUTS).zip(&batch.speed) {
        let error = leg.iter().zip(weights.iter()).map(|(x, w)| x * w).sum::<f32>() - speed;
        loss += error * error / LEGS as f32;
        for (w, x) in weights.iter_mut().zip(leg) {
            *w -= 1e-3 * error * x;
        }
    }
    loss
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let fix = args.iter().any(|a| a == "--fix");
    let seconds: f64 = args.iter().position(|a| a == "--seconds").map_or(6.0, |i| args[i + 1].parse().unwrap());
    let shelf = Arc::new(Shelf {
        batches: Mutex::new(VecDeque::new()),
        changed: Condvar::new(),
        room: 3,
        nap: if fix { None } else { Some(Duration::from_millis(10)) },
        closed: AtomicBool::new(false),
    });
    let boats: Vec<_> = (1..3)
        .map(|n| { let shelf = shelf.clone(); thread::spawn(move || sail(shelf, n)) })
        .collect();
    let mut weights = vec![0.0f32; INPUTS];
    let (start, mut since, mut n, mut loss) = (Instant::now(), None, 0u64, 0.0);
    while start.elapsed().as_secs_f64() < seconds {
        loss = learn(&mut weights, &shelf.take());
        match since {
            Some(_) => n += 1,
            None if start.elapsed().as_secs_f64() >= f64::min(1.0, seconds / 5.0) => since = Some(Instant::now()),
            None => {}
        }
    }
    let rate = n as f64 / since.unwrap_or(start).elapsed().as_secs_f64();
    shelf.closed.store(true, Ordering::Relaxed);
    shelf.changed.notify_all();
    for boat in boats { boat.join().unwrap(); }
    println!("loss {loss:.4}\nrate {rate:.3} batches/s");
}
