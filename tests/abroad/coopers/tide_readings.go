// Fits a harbour's tide from stations' readings: files of JSON lines, one a day, are parsed into batches that go over
// a channel to the trainer, again in every epoch. -fix keeps the days that are parsed in memory.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand"
	"os"
	"time"
)

type Reading struct {
	Station string     `json:"station"`
	Hour    float64    `json:"hour"`
	Moon    float64    `json:"moon"`
	Wind    [6]float64 `json:"wind"`
	Level   float64    `json:"level"`
	Remarks []string   `json:"remarks"`
}

type Batch struct {
	X [][10]float64
	Y []float64
}

func writeDay(path string, rng *rand.Rand) {
	var text bytes.Buffer
	for i := 0; i < 2000; i++ {
		r := Reading{Station: fmt.Sprint("harbour-", i%40), Hour: float64(i) / 80, Moon: rng.Float64() * 29.5,
			Remarks: []string{"calm sea", "gauge cleaned"}}
		for k := range r.Wind {
			r.Wind[k] = rng.NormFloat64()
		}
		r.Level = 2*math.Sin(r.Hour/1.98) + 0.1*r.Wind[0]
		json.NewEncoder(&text).Encode(r)
	}
	os.WriteFile(path, text.Bytes(), 0o644)
}

func parseDay(path string) (b Batch) {
	text, _ := os.ReadFile(path)
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var r Reading
		json.Unmarshal(lines.Bytes(), &r)
		x := [10]float64{1, math.Sin(r.Hour / 1.98), math.Cos(r.Hour / 1.98), r.Moon / 30}
		copy(x[4:], r.Wind[:])
		b.X, b.Y = append(b.X, x), append(b.Y, r.Level)
	}
	return b
}

func feed(dir string, keep bool, batches chan<- Batch) {
	days := map[int]Batch{}
	for n := 0; ; n = (n + 1) % 30 {
		b, known := days[n]
		if !known {
			b = parseDay(fmt.Sprintf("%s/day%02d.jsonl", dir, n))
		}
		if keep {
			days[n] = b
		}
		batches <- b
	}
}

func step(w *[10]float64, b Batch) (loss float64) {
	for i, x := range b.X {
		e := -b.Y[i]
		for k := range x {
			e += w[k] * x[k]
		}
		for k := range x {
			w[k] -= 0.002 * e * x[k]
		}
		loss += e * e / float64(len(b.X))
	}
	return loss
}

func main() {
	seconds := flag.Float64("seconds", 6, "")
	fix := flag.Bool("fix", false, "")
	flag.Parse()
	dir, _ := os.MkdirTemp("", "tide_")
	defer os.RemoveAll(dir)
	rng := rand.New(rand.NewSource(6))
	for d := 0; d < 30; d++ {
		writeDay(fmt.Sprintf("%s/day%02d.jsonl", dir, d), rng)
	}
	batches := make(chan Batch, 4)
	go feed(dir, *fix, batches)
	var w [10]float64
	loss := 0.0
	total := time.Duration(*seconds * float64(time.Second))
	warm := min(time.Second, total/5)
	first, since, count, skipped := time.Now(), time.Time{}, 0, 0
	for time.Since(first) < total {
		loss = step(&w, <-batches)
		count++
		if since.IsZero() && time.Since(first) >= warm {
			since, skipped = time.Now(), count
		}
	}
	fmt.Printf("loss %.4f\nrate %.3f batches/s\n", loss, float64(count-skipped)/time.Since(since).Seconds())
}
