//! Gauges are asked one after another over TCP; each takes a moment to answer. A reader thread makes batches of the
//! answers for a small network. --fix: four readers.
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{sync_channel, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

fn answer(stream: TcpStream) {
    let mut out = stream.try_clone().unwrap();
    stream.set_nodelay(true).unwrap();
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        thread::sleep(Duration::from_millis(5));
        let number: u64 = line.parse().unwrap_or(0);
        let values: Vec<String> = (0..32).map(|k| ((number * 31 + k) % 997).to_string()).collect();
        if writeln!(out, "{}", values.join(" ")).is_err() {
            return;
        }
    }
}

fn gauges() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream));
        }
    });
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line); // ends with the one who started us
}

fn reader(port: u16, first: u64, step: u64, out: SyncSender<Vec<Vec<f32>>>) {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut ask = stream.try_clone().unwrap();
    let mut lines = BufReader::new(stream).lines();
    let mut number = first;
    loop {
        let mut batch = Vec::with_capacity(4);
        for _ in 0..4 {
            writeln!(ask, "{number}").unwrap();
            let line = lines.next().unwrap().unwrap();
            batch.push(line.split(' ').map(|v| v.parse::<f32>().unwrap() / 997.0).collect());
            number += step;
        }
        if out.send(batch).is_err() {
            return;
        }
    }
}

fn forward(batch: &[Vec<f32>], weights: &[f32]) -> f32 {
    let mut total = 0.0;
    for row in batch {
        for unit in weights.chunks(32) {
            total += row.iter().zip(unit).map(|(a, b)| a * b).sum::<f32>().tanh();
        }
    }
    total
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.iter().any(|a| a == "gauges") {
        return gauges();
    }
    let fix = args.iter().any(|a| a == "--fix");
    let seconds = args.iter().position(|a| a == "--seconds").map_or(6.0, |i| args[i + 1].parse().unwrap());
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg("gauges")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
    let port = said.trim().parse().unwrap();
    let (send, receive) = sync_channel(4);
    let readers = if fix { 4 } else { 1 };
    for k in 0..readers {
        let send = send.clone();
        thread::Builder::new().name(format!("reader-{k}")).spawn(move || reader(port, k, readers, send)).unwrap();
    }
    let weights: Vec<f32> = (0..32 * 512).map(|k| (k as f32).sin()).collect();
    let begin = Instant::now();
    let (mut count, mut total) = (0, 0.0);
    while begin.elapsed().as_secs_f64() < seconds {
        total += forward(&receive.recv().unwrap(), &weights);
        count += 1;
    }
    println!("rate {:.3} batches/s", count as f64 / begin.elapsed().as_secs_f64());
    if total.is_nan() {
        println!("odd");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
