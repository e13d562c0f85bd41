// Fits the melt of glaciers to satellite bands; a thread reads the tiles ahead of the trainer.
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{sync_channel, SyncSender};
use std::thread;
use std::time::Instant;

const BANDS: usize = 256;
const TILES: usize = 2048;
const BLOCKS: usize = 12;
const PASSES: usize = 4;

struct Block {
    bands: Vec<f32>, // TILES rows of BANDS values
    melt: Vec<f32>,
}

fn write_tiles(path: &Path) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let mut seed: u64 = 9;
    for _ in 0..BLOCKS * TILES {
        let mut sum = 0f32;
        for band in 0..BANDS {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let value = (seed >> 40) as f32 / (1u64 << 24) as f32 - 0.5;
            sum += value * (band % 3) as f32;
            out.write_all(&value.to_le_bytes())?;
        }
        out.write_all(&sum.to_le_bytes())?;
    }
    out.flush()
}

fn read_tiles(path: PathBuf, out: SyncSender<Block>) {
    let mut raw = vec![0u8; TILES * (BANDS + 1) * 4];
    loop {
        let mut file = File::open(&path).expect("tiles");
        for _ in 0..BLOCKS {
            file.read_exact(&mut raw).expect("a whole block");
            let mut block = Block { bands: Vec::with_capacity(TILES * BANDS), melt: Vec::with_capacity(TILES) };
            for row in raw.chunks_exact((BANDS + 1) * 4) {
                let values = row.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
                block.bands.extend(values.clone().take(BANDS));
                block.melt.push(values.last().unwrap());
            }
            if out.send(block).is_err() {
                return;
            }
        }
    }
}

#[inline(never)]
fn gradient_by_band(block: &Block, weights: &[f32], slope: &mut [f32]) -> f32 {
    let mut error: Vec<f32> = block.melt.iter().map(|m| -m).collect();
    for band in 0..BANDS {
        for tile in 0..TILES {
            error[tile] += weights[band] * block.bands[tile * BANDS + band];
        }
    }
    for band in 0..BANDS {
        slope[band] = (0..TILES).map(|tile| error[tile] * block.bands[tile * BANDS + band]).sum();
    }
    error.iter().map(|e| e * e).sum::<f32>() / TILES as f32
}

#[inline(never)]
fn gradient_by_tile(block: &Block, weights: &[f32], slope: &mut [f32]) -> f32 {
    let mut loss = 0f32;
    slope.fill(0.0);
    for (row, melt) in block.bands.chunks_exact(BANDS).zip(&block.melt) {
        let error = row.iter().zip(weights).map(|(x, w)| x * w).sum::<f32>() - melt;
        slope.iter_mut().zip(row).for_each(|(s, x)| *s += error * x);
        loss += error * error;
    }
    loss / TILES as f32
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let fix = args.iter().any(|a| a == "--fix");
    let seconds: f64 = args.iter().position(|a| a == "--seconds").map_or(6.0, |i| args[i + 1].parse().unwrap());
    let folder = std::env::temp_dir().join(format!("glacier{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let path = folder.join("tiles.f32");
    write_tiles(&path).unwrap();
    let (sender, blocks) = sync_channel(4);
    let reader = thread::Builder::new().name("tile-reader".into()).spawn(move || read_tiles(path, sender)).unwrap();
    let (mut weights, mut slope) = (vec![0f32; BANDS], vec![0f32; BANDS]);
    let (mut batches, mut skipped, mut loss) = (0u64, None, 0f32);
    let first = Instant::now();
    let mut start = first;
    while first.elapsed().as_secs_f64() < seconds {
        let block = blocks.recv().unwrap();
        for _ in 0..PASSES {
            let gradient = if fix { gradient_by_tile } else { gradient_by_band };
            loss = gradient(&block, &weights, &mut slope);
            weights.iter_mut().zip(&slope).for_each(|(w, s)| *w -= 0.5 * s / TILES as f32);
        }
        batches += 1;
        if skipped.is_none() && first.elapsed().as_secs_f64() >= (seconds / 5.0).min(1.0) {
            start = Instant::now();
            skipped = Some(batches);
        }
    }
    let rate = (batches - skipped.unwrap_or(0)) as f64 / start.elapsed().as_secs_f64();
    drop(blocks);
    reader.join().unwrap();
    fs::remove_dir_all(&folder).unwrap();
    println!("loss {loss:.4}\nrate {rate:.3} batches/s");
}
