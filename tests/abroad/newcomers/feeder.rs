// A producer thread unpacks run-length coded frames into a bounded channel; the main thread trains. --fix: two producers.
use std::sync::mpsc::{sync_channel, SyncSender};
use std::thread;
use std::time::Instant;

const PIXELS: usize = 96 * 96;

fn encode(seed: u32) -> Vec<(u8, u8)> {
    let mut state = seed;
    let mut runs = Vec::new();
    let mut total = 0;
    while total < PIXELS {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        let length = (1 + (state >> 28) as usize).min(PIXELS - total);
        runs.push((length as u8, (state >> 16) as u8));
        total += length;
    }
    runs
}

fn unpack(runs: &[(u8, u8)]) -> Vec<f32> {
    let mut frame = Vec::with_capacity(PIXELS);
    for &(length, value) in runs {
        for _ in 0..length {
            frame.push(value as f32 / 255.0);
        }
    }
    // smooth it, several times
    for _ in 0..30 {
        let before = frame.clone();
        for y in 1..95 {
            for x in 1..95 {
                let at = y * 96 + x;
                frame[at] = 0.5 * before[at] + 0.125 * (before[at - 1] + before[at + 1] + before[at - 96] + before[at + 96]);
            }
        }
    }
    frame
}

fn produce(frames: Vec<Vec<(u8, u8)>>, out: SyncSender<Vec<Vec<f32>>>) {
    let mut at = 0;
    loop {
        let batch = (0..16).map(|k| unpack(&frames[(at + k) % frames.len()])).collect();
        at += 16;
        if out.send(batch).is_err() {
            return;
        }
    }
}

fn train(weights: &mut [f32], batch: &[Vec<f32>]) {
    for frame in batch {
        for _ in 0..20 {
            let error: f32 = weights.iter().zip(frame).map(|(w, x)| w * x).sum::<f32>() - 1.0;
            for (w, x) in weights.iter_mut().zip(frame) {
                *w -= 1e-5 * error * x;
            }
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let seconds: f64 = arguments.iter().position(|a| a == "--seconds").map_or(6.0, |i| arguments[i + 1].parse().unwrap());
    let producers = if arguments.iter().any(|a| a == "--fix") { 2 } else { 1 };
    let (sender, receiver) = sync_channel(8);
    for p in 0..producers {
        let frames = (0..64).map(|n| encode(n * 7 + p)).collect();
        let sender = sender.clone();
        thread::Builder::new().name(format!("producer{}", p)).spawn(move || produce(frames, sender)).unwrap();
    }
    let mut weights = vec![0.0f32; PIXELS];
    let begin = Instant::now();
    let mut count = 0;
    for batch in receiver {
        train(&mut weights, &batch);
        count += 1;
        if begin.elapsed().as_secs_f64() > seconds {
            break;
        }
    }
    println!("rate {:.3} batches/s", count as f64 / begin.elapsed().as_secs_f64());
    std::process::exit(0);
}
