// A cache of vectors, the Rust peer of tools/peers/run.
//
//   peers_rust append 1|8 | copy new|kept     (vectors of K and of V a layer: one, or one a head)
//
// Does step by step what tools/peers/ours.cpp does, and prints the same line of JSON.
use std::hint::black_box;
use std::time::Instant;

const LAYERS: usize = 32;
const TOKENS: usize = 512;
const WIDTH: usize = 8 * 128;
const POSITIONS: usize = 4095;
const PASSES: usize = 5;

fn fill(row: &mut [f32], layer: usize, side: usize, token: usize) {
    for (i, cell) in row.iter_mut().enumerate() {
        *cell = ((layer * 977 + side * 389 + token * 131 + i * 7) % 8191) as f32;
    }
}

#[derive(Default)]
struct Sum {
    sum: u64,
    index: u64,
}

impl Sum {
    fn add(&mut self, rows: &[f32]) {
        for value in rows {
            self.sum = self.sum.wrapping_add(*value as u64 * (self.index % 8191 + 1));
            self.index += 1;
        }
    }
}

fn time(times: &mut Vec<f64>, call: impl FnOnce()) {
    let begin = Instant::now();
    call();
    times.push(begin.elapsed().as_nanos() as f64);
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

struct Layer {
    sides: [Vec<Vec<f32>>; 2],
}

fn append(channels: usize) -> (f64, u64) {
    let dim = WIDTH / channels;
    let side = || (0..channels).map(|_| Vec::with_capacity(TOKENS * dim)).collect();
    let mut cache: Vec<Layer> = (0..LAYERS).map(|_| Layer { sides: [side(), side()] }).collect();
    let mut rows = vec![[vec![0f32; WIDTH], vec![0f32; WIDTH]]; LAYERS];
    let mut times = Vec::new();
    for pass in 0..=PASSES {
        for layer in &mut cache {
            layer.sides.iter_mut().flatten().for_each(Vec::clear);
        }
        for token in 0..TOKENS {
            for (layer, sides) in rows.iter_mut().enumerate() {
                for (side, row) in sides.iter_mut().enumerate() {
                    fill(row, layer, side, token);
                }
            }
            let mut step = || {
                for (layer, from) in cache.iter_mut().zip(black_box(&rows)) {
                    for (side, row) in layer.sides.iter_mut().zip(from) {
                        for (to, piece) in side.iter_mut().zip(row.chunks_exact(dim)) {
                            to.extend_from_slice(piece);
                        }
                    }
                }
            };
            if pass == 0 {
                step();
            } else {
                time(&mut times, step);
            }
        }
    }
    let mut sum = Sum::default();
    for side in cache.iter().flat_map(|layer| &layer.sides) {
        for token in 0..TOKENS {
            side.iter().for_each(|rows| sum.add(&rows[token * dim..(token + 1) * dim]));
        }
    }
    (median(&mut times), sum.sum)
}

fn copy(kept: bool) -> (f64, u64) {
    let mut sides = [Vec::new(), Vec::new()];
    let mut row = vec![0f32; WIDTH];
    for token in 0..POSITIONS {
        for (side, rows) in sides.iter_mut().enumerate() {
            fill(&mut row, 0, side, token);
            rows.extend_from_slice(&row);
        }
    }
    let mut to = sides.clone();
    let mut times = Vec::new();
    for _ in 0..41 {
        time(&mut times, || {
            if kept {
                for (to, from) in to.iter_mut().zip(black_box(&sides)) {
                    to.copy_from_slice(from);
                }
                black_box(&to);
            } else {
                black_box([sides[0].to_vec(), sides[1].to_vec()]);
            }
        });
    }
    let read = if kept { to } else { [sides[0].to_vec(), sides[1].to_vec()] };
    let mut sum = Sum::default();
    read.iter().for_each(|side| sum.add(side));
    (median(&mut times), sum.sum)
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (ns, check) = match words[..] {
        ["append", channels] => append(channels.parse().unwrap()),
        ["copy", "new"] => copy(false),
        ["copy", "kept"] => copy(true),
        _ => panic!("unknown work: {words:?}"),
    };
    println!("{{\"ns\": {ns:.1}, \"check\": {check}}}");
}
